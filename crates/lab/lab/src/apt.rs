//! apt on folders of its own, and from where it takes QEMU.
//!
//! An empty status file makes it fetch all that a package needs, and another architecture is only
//! another word in its configuration. No root is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::error::{LabError, Result};
use crate::packages::{ProgressFn, run, write};

/// The release whose QEMU (7.2) can go on executing an instruction that another processor has replaced;
/// its backports have one (10.0) with which that was not seen (docs/lab.md, "When a machine hangs").
const RELEASE: &str = "bookworm";
const BACKPORTS: &str = "bookworm-backports";
const MEND: &str = "the lab needs apt for its kernel and programs: run it on Debian or Ubuntu, or use --kernel and --root";

/// apt with folders of its own.
pub(crate) struct Apt {
    folder: PathBuf,
    /// What its configuration says at first.
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

    /// Reads the lists of packages; on Debian 12 also those of its backports, for a later QEMU. A mirror
    /// without backports is said, and no error.
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

    /// Where this system takes the packages of Debian 12 from; none where it is another system.
    fn mirror(&self) -> Result<Option<String>> {
        let format = "$(CODENAME) $(ORIGIN) $(COMPONENT) $(REPO_URI)";
        let targets = self.run(&["indextargets", "--format", format, "Created-By: Packages"])?;
        let wanted = format!("{RELEASE} Debian main ");
        Ok(targets.lines().find_map(|line| line.strip_prefix(&wanted)).map(str::to_owned))
    }

    /// Has QEMU and its firmware come from backports, all else from where the system has it.
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

    /// Runs apt-get, for what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C");
        run(&mut command, MEND)
    }

    /// The packages' files that it has downloaded, in order.
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
