//! Mounted file systems whose files can be read without blocking.
//!
//! Any user's program may be on that user's FUSE file system, or on another machine. A read there may take as long as
//! its server likes, and signals may not interrupt it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Max bytes to read of the list of mounts.
const MAX_BYTES: u64 = 16 << 20;

/// Types of local file systems. Below an overlay that root mounted, root chose the layers.
const LOCAL: &[&str] = &[
    "bcachefs", "btrfs", "cramfs", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs",
    "iso9660", "jffs2", "jfs", "minix", "nilfs2", "ntfs3", "overlay", "ramfs", "reiserfs", "romfs",
    "rootfs", "squashfs", "tmpfs", "ubifs", "udf", "vfat", "xfs", "zfs",
];

/// Local mounts that only root can have made.
#[derive(Debug, Default)]
pub(crate) struct LocalMounts {
    /// Device numbers of their file systems, which are the same at every mount point.
    devices: BTreeSet<(u32, u32)>,
    /// Their mount ids: some file systems give each folder another device number.
    ids: BTreeSet<u64>,
}

impl LocalMounts {
    /// Mounts of process 1. In its namespace, users' own mounts are only those that helpers such as `fusermount` make.
    pub(crate) fn find() -> Self {
        let list = ["/proc/1/mountinfo", "/proc/self/mountinfo"].map(File::open);
        let list = list.into_iter().flatten().next();
        list.map_or_else(Self::default, |list| Self::parse(list.take(MAX_BYTES)))
    }

    /// Lines `id parent major:minor root place options [tags …] - kind source options`.
    fn parse(list: impl Read) -> Self {
        let mut found = Self::default();
        for line in BufReader::new(list).split(b'\n').map_while(Result::ok) {
            if let Some((id, device)) = local(&line) {
                found.ids.insert(id);
                found.devices.insert(device);
            }
        }
        found
    }

    pub(crate) fn has(&self, device: (u32, u32), mount: Option<u64>) -> bool {
        self.devices.contains(&device) || mount.is_some_and(|mount| self.ids.contains(&mount))
    }
}

/// Mount id and device number of a local mount.
fn local(line: &[u8]) -> Option<(u64, (u32, u32))> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    let kind = words.skip_while(|word| *word != "-").nth(1)?;
    LOCAL.contains(&kind).then_some(())?;
    Some((id, (major.parse().ok()?, minor.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /home/u/mnt rw,nosuid - fuse.sshfs u@h: rw
41 22 0:36 / /srv\\040a rw - nfs4 h:/srv rw
42 22 0:37 /@ /data rw master:3 propagate_from:1 - btrfs /dev/vdb rw
43 22 x:y / / rw - ext4 /dev/vdc rw
44 22
";

    #[test]
    fn mounts_of_others_and_of_other_machines_are_not_local() {
        let mounts = LocalMounts::parse(LIST.as_bytes());
        assert!(mounts.has((254, 0), None) && mounts.has((9, 9), Some(42)));
        assert!(!mounts.has((0, 35), Some(40)) && !mounts.has((0, 36), Some(41)));
        assert!(!mounts.has((9, 9), None) && !mounts.has((9, 9), Some(43)));
    }
}
