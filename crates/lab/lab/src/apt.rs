//! Runs apt with its own folders, and chooses the source of QEMU.
//!
//! With an empty status file, apt fetches all dependencies of a package, and another architecture needs only another
//! line in its configuration. Root is not needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::error::{LabError, Result};
use crate::packages::{ProgressFn, run, write};

/// The release whose QEMU (7.2) may keep executing an instruction that another CPU has replaced. Its backports have
/// QEMU 10.0, which was not seen to do so (docs/lab.md, "When a machine hangs").
const RELEASE: &str = "bookworm";
const BACKPORTS: &str = "bookworm-backports";
const MEND: &str = "the lab needs apt for its kernel and programs: run it on Debian or Ubuntu, or use --kernel and --root";

/// apt with its own folders.
pub(crate) struct Apt {
    folder: PathBuf,
    /// Its initial configuration.
    configuration: String,
}

impl Apt {
    pub(crate) fn set_up(cache: &Cache, architecture: &str) -> Result<Self> {
        let folder = cache.root().join("apt").join(architecture);
        for part in ["state/lists/partial", "cache/archives/partial"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(LabError::io("cannot make", &path))?;
        }
        write(&folder.join("status"), "")?;
        let at = folder.display();
        let configuration = format!(
            "Dir::State \"{at}/state\";\nDir::State::status \"{at}/status\";\nDir::Cache \"{at}/cache\";\n\
             APT::Architecture \"{architecture}\";\nAPT::Architectures {{ \"{architecture}\"; }};\n\
             APT::Get::List-Cleanup \"false\";\nAPT::Sandbox::User \"\";\nAPT::Update::Post-Invoke {{}};\n\
             Binary::apt-get::APT::Keep-Downloaded-Packages \"true\";\n"
        );
        write(&folder.join("apt.conf"), &configuration)?;
        Ok(Self { folder, configuration })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the package lists; on Debian 12 also those of backports, for a later QEMU. A mirror without backports only
    /// causes a message.
    pub(crate) fn update(&self, progress: ProgressFn<'_>) -> Result<()> {
        self.run(&["update", "-qq"])?;
        let Some(mirror) = self.mirror()? else {
            return Ok(());
        };
        self.add_backports(&mirror)?;
        if let Err(error) = self.run(&["update", "-qq"]) {
            progress(&format!(
                "{mirror} has no {BACKPORTS}, and machines of QEMU 7.2 may hang: {error}"
            ));
            return write(&self.folder.join("apt.conf"), &self.configuration);
        }
        Ok(())
    }

    /// The system's mirror of Debian 12; `None` on other systems.
    fn mirror(&self) -> Result<Option<String>> {
        let format = "$(CODENAME) $(ORIGIN) $(COMPONENT) $(REPO_URI)";
        let targets = self.run(&["indextargets", "--format", format, "Created-By: Packages"])?;
        let wanted = format!("{RELEASE} Debian main ");
        Ok(targets.lines().find_map(|line| line.strip_prefix(&wanted)).map(str::to_owned))
    }

    /// Configures QEMU and its firmware to come from backports, everything else from the system's source.
    fn add_backports(&self, mirror: &str) -> Result<()> {
        let systems = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        let sources = self.folder.join("sources.list");
        write(&sources, &format!("{systems}\ndeb {mirror} {BACKPORTS} main\n"))?;
        let preferences = self.folder.join("preferences");
        let pin = format!(
            "Package: src:qemu src:seabios\nPin: release n={BACKPORTS}\nPin-Priority: 990\n"
        );
        write(&preferences, &pin)?;
        let more = format!(
            "Dir::Etc::sourcelist \"{}\";\nDir::Etc::preferences \"{}\";\n",
            sources.display(),
            preferences.display()
        );
        write(&self.folder.join("apt.conf"), &format!("{}{more}", self.configuration))
    }

    /// Runs apt-get, and returns its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C");
        run(&mut command, MEND)
    }

    /// The package files that it has downloaded, in order.
    pub(crate) fn downloaded(&self) -> Result<Vec<PathBuf>> {
        let folder = self.folder.join("cache/archives");
        let entries = fs::read_dir(&folder).map_err(LabError::io("cannot read", &folder))?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .collect();
        files.sort();
        Ok(files)
    }
}
