//! How much memory the server may use, as far as the system tells.
//!
//! A process in a container sees the memory of the whole machine, but is killed when it takes more than its
//! group may, so the smallest limit on the way from its group to the root is what counts.

use std::fs;
use std::path::Path;

use crate::limits::{BUDGET_OF_CONTAINER, BUDGET_OF_MACHINE};

/// The budget when nobody says otherwise. A container's memory is ours but for what the kernel keeps for us in it, such as
/// the buffers of connections; a machine has other programs.
pub fn budget_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    budget_of(machine, group_limit(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")))
}

fn budget_of(machine: u64, group: Option<u64>) -> u64 {
    let of_machine = BUDGET_OF_MACHINE.of(machine);
    group.map_or(of_machine, |limit| BUDGET_OF_CONTAINER.of(limit).min(of_machine))
}

/// The smallest memory limit of the control groups that `membership` names, in either version's layout.
fn group_limit(membership: &Path, root: &Path) -> Option<u64> {
    let text = fs::read_to_string(membership).ok()?;
    text.lines().filter_map(|line| limit_of_line(line, root)).min()
}

/// A line is `hierarchy:controllers:path`; version 2 has the one hierarchy 0 without controllers.
fn limit_of_line(line: &str, root: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (folder, file) = match controllers {
        "" => (root.to_owned(), "memory.max"),
        list if list.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    // Inside a container the path may be that of the host; then only the root can be read, and it is ours.
    let group = folder.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&folder));
    groups.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(membership: &str, files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        let list = folder.path().join("membership");
        fs::write(&list, membership).expect("a file");
        group_limit(&list, folder.path())
    }

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let files = [
            ("a/b/memory.max", "max\n"),
            ("a/memory.max", "1000\n"),
            ("memory.max", "5000\n"),
            ("c/memory.max", "7\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &files), Some(1000));
        assert_eq!(limit("0::/\n", &files), Some(5000));
    }

    #[test]
    fn the_first_version_keeps_limits_in_a_folder_of_their_own() {
        let files = [("memory/docker/memory.limit_in_bytes", "4096\n"), ("docker/memory.max", "1\n")];
        assert_eq!(limit("5:cpu,memory:/docker\n3:pids:/docker\n", &files), Some(4096));
    }

    #[test]
    fn a_path_of_the_host_falls_back_to_what_the_container_shows() {
        assert_eq!(limit("0::/of/the/host\n", &[("memory.max", "2048\n")]), Some(2048));
    }

    #[test]
    fn the_budget_is_a_part_of_what_the_container_or_the_machine_gives() {
        const GIB: u64 = 1 << 30;
        assert_eq!(budget_of(8 * GIB, None), 4 * GIB);
        assert_eq!(budget_of(8 * GIB, Some(GIB)), 768 << 20);
        assert_eq!(budget_of(8 * GIB, Some(256 << 20)), 192 << 20);
        assert_eq!(budget_of(8 * GIB, Some(7 * GIB)), 4 * GIB, "the machine has not more");
        // The first version says that there is no limit with a number beyond any memory.
        assert_eq!(budget_of(8 * GIB, Some(0x7fff_ffff_ffff_f000)), 4 * GIB);
    }

    #[test]
    fn without_a_limit_there_is_none() {
        assert_eq!(limit("0::/a\n", &[("a/memory.max", "max\n")]), None);
        assert_eq!(limit("nonsense", &[]), None);
    }
}
