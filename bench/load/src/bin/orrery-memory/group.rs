//! A control group that limits the memory of a server, in either version's layout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

pub struct Group {
    folder: PathBuf,
    is_second_version: bool,
}

impl Group {
    /// Makes a group below the root; needs the right to do so.
    pub fn new(name: &str, bytes: u64) -> anyhow::Result<Group> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let is_second_version = !first.is_dir();
        let root = if is_second_version { Path::new("/sys/fs/cgroup") } else { first };
        if is_second_version {
            // Where it is on already this changes nothing; where it may not be turned on the limit below cannot be set.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        }
        let folder = root.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&folder)
            .with_context(|| format!("no control group can be made in {}", root.display()))?;
        let group = Group { folder, is_second_version };
        let file = if is_second_version { "memory.max" } else { "memory.limit_in_bytes" };
        fs::write(group.folder.join(file), bytes.to_string()).context("the limit cannot be set")?;
        // Swapping would hide what is wanted.
        let swap =
            if is_second_version { ("memory.swap.max", 0) } else { ("memory.memsw.limit_in_bytes", bytes) };
        let _ = fs::write(group.folder.join(swap.0), swap.1.to_string());
        Ok(group)
    }

    /// A command that becomes `binary` inside the group.
    pub fn command(&self, binary: &Path) -> anyhow::Result<Command> {
        let Some(folder) = self.folder.to_str() else { bail!("the name of the group is not text") };
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#, folder]).arg(binary);
        Ok(command)
    }

    /// Processes that were killed for want of memory.
    pub fn kills(&self) -> u64 {
        let file = if self.is_second_version { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }

    /// The most that the group used, pages of files included.
    pub fn highest_bytes(&self) -> u64 {
        let file = if self.is_second_version { "memory.peak" } else { "memory.max_usage_in_bytes" };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that still has processes stays, and its name says whose it was.
        let _ = fs::remove_dir(&self.folder);
    }
}
