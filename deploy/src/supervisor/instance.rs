//! One running system among others: its lock, its control socket, and how it is found.
//!
//! ```text
//!   <dir>/.sirocco-<port>.lock    locked while the supervisor lives; holds an `Entry`
//!   <dir>/.sirocco-<port>.sock    answers questions (`status`)
//!   <runtime dir>/<pid>.json      an `Entry`, so that `sirocco status` finds it from anywhere
//! ```
//! The runtime directory is `$XDG_RUNTIME_DIR/sirocco` or `/tmp/sirocco-<uid>`, for its owner only.
//!
//! Why the port is in the names: several systems may share a working directory, as with Redis.
//! Why paths go through a directory descriptor: a socket's path may have 107 bytes, a data directory
//! more.
//!
//! Invariants: a lock that is held means a living supervisor; leftovers without a lock are removed
//! by whoever comes next.
//!
//! Not here: what is answered (`status`).

use super::listeners::remove_stale_socket;
use crate::config::reason;
use crate::exit::Failure;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// What is written down about a running system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Process number of the supervisor.
    pub pid: u32,
    /// TCP port, 0 for none.
    pub port: u16,
    /// Data directory.
    pub dir: PathBuf,
}

impl Entry {
    fn name(&self, end: &str) -> String {
        format!(".sirocco-{}.{end}", self.port)
    }
}

/// The files of a running system; dropping it removes them.
#[derive(Debug)]
pub struct Instance {
    entry: Entry,
    folder: File,
    listener: Option<UnixListener>,
    _lock: Flock<File>,
}

impl Instance {
    /// Takes the lock and opens the control socket. `None` if the directory cannot be written: the
    /// system works without, it only cannot be asked.
    ///
    /// # Errors
    /// If another supervisor holds the lock.
    pub fn create(dir: &Path, port: u16) -> Result<Option<Self>, Failure> {
        let entry = Entry {
            pid: std::process::id(),
            port,
            dir: dir.to_path_buf(),
        };
        let Ok(file) = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .mode_private()
            .open(dir.join(entry.name("lock")))
        else {
            return Ok(None);
        };
        let mut lock = lock_patiently(file).ok_or_else(|| {
            Failure::Instance(format!(
                "another sirocco with port {port} runs in {}; stop it, or choose another --port",
                dir.display()
            ))
        })?;
        let text = serde_json::to_vec(&entry).unwrap_or_default();
        let written = lock.set_len(0).and_then(|()| lock.write_all(&text));
        let folder = File::open(dir);
        let (Ok(()), Ok(folder)) = (written, folder) else {
            return Ok(None);
        };
        let mut instance = Self {
            entry,
            folder,
            listener: None,
            _lock: lock,
        };
        instance.listener = instance.listen().ok();
        instance.announce();
        Ok(Some(instance))
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let path = through(&self.folder, &self.entry.name("sock"));
        // The lock is ours: nobody can be answering there.
        let _ = remove_stale_socket(&path);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Leaves the entry where `sirocco status` looks. Failing only makes it harder to find.
    fn announce(&self) {
        if let Some(folder) = runtime_folder() {
            for left in fs::read_dir(&folder).into_iter().flatten().flatten() {
                // Left by a supervisor that was killed.
                if read_entry(&left.path()).is_none_or(|entry| !is_alive(&entry)) {
                    let _ = fs::remove_file(left.path());
                }
            }
            let text = serde_json::to_vec(&self.entry).unwrap_or_default();
            let _ = fs::write(folder.join(format!("{}.json", self.entry.pid)), text);
        }
    }

    /// The control socket, to be taken by the shell.
    pub fn take_listener(&mut self) -> Option<UnixListener> {
        self.listener.take()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for end in ["sock", "lock"] {
            let _ = fs::remove_file(through(&self.folder, &self.entry.name(end)));
        }
        if let Some(folder) = runtime_folder() {
            let _ = fs::remove_file(folder.join(format!("{}.json", self.entry.pid)));
        }
    }
}

/// Locks a file, or gives up when somebody else has it for longer than `sirocco status` does, which
/// tries the lock for a moment to see whether its owner lives.
fn lock_patiently(mut file: File) -> Option<Flock<File>> {
    for _ in 0..20 {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((back, _)) => file = back,
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    None
}

/// A path inside an open directory that is short whatever the directory's own path.
fn through(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// The private directory for entries, made if needed; `None` if it belongs to somebody else.
fn runtime_folder() -> Option<PathBuf> {
    let uid = nix::unistd::getuid();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(parent) => PathBuf::from(parent).join("sirocco"),
        None => std::env::temp_dir().join(format!("sirocco-{uid}")),
    };
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    let meta = fs::symlink_metadata(&folder).ok()?;
    (made.is_ok() && meta.is_dir() && meta.uid() == uid.as_raw()).then_some(folder)
}

/// The running systems that match: all of this user, or those of a port or directory.
pub fn find(port: Option<u16>, dir: Option<&Path>) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    if let Some(dir) = dir {
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        let locks = names.filter(|name| {
            let name = name.file_name().to_string_lossy().into_owned();
            name.starts_with(".sirocco-") && name.ends_with(".lock")
        });
        found.extend(locks.filter_map(|name| read_entry(&name.path())));
    } else if let Some(folder) = runtime_folder() {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(names.filter_map(|name| read_entry(&name.path())));
    }
    found.retain(|entry| port.is_none_or(|port| port == entry.port) && is_alive(entry));
    found.sort_by_key(|entry| (entry.port, entry.pid));
    found
}

fn read_entry(path: &Path) -> Option<Entry> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Whether the entry's lock is held, which it is exactly as long as its supervisor lives.
fn is_alive(entry: &Entry) -> bool {
    let Ok(file) = File::open(entry.dir.join(entry.name("lock"))) else {
        return false;
    };
    Flock::lock(file, FlockArg::LockSharedNonblock).is_err()
}

/// Connects to the control socket of a running system.
///
/// # Errors
/// If it does not answer.
pub fn connect(entry: &Entry) -> Result<UnixStream, Failure> {
    let failed = |error: io::Error| {
        let dir = entry.dir.display();
        Failure::Instance(format!(
            "supervisor {} in {dir} does not answer: {}",
            entry.pid,
            reason(&error)
        ))
    };
    let folder = File::open(&entry.dir).map_err(failed)?;
    UnixStream::connect(through(&folder, &entry.name("sock"))).map_err(failed)
}

/// Files for their owner only.
trait Private {
    fn mode_private(&mut self) -> &mut Self;
}

impl Private for OpenOptions {
    fn mode_private(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.mode(0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_locks_its_port_in_its_directory_and_is_found_there() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("d".repeat(120));
        fs::create_dir(&long).unwrap();
        let mut first = Instance::create(&long, 7499).unwrap().unwrap();
        let listener = first.take_listener().unwrap();
        assert!(Instance::create(&long, 7499).is_err());
        let other = Instance::create(&long, 7498).unwrap().unwrap();
        let found = find(None, Some(&long));
        assert_eq!(
            found.iter().map(|entry| entry.port).collect::<Vec<_>>(),
            [7498, 7499]
        );
        assert_eq!(find(Some(7499), Some(&long)).len(), 1);
        connect(&found[1]).unwrap();
        listener.accept().unwrap();
        drop((first, other));
        assert_eq!(find(None, Some(&long)), []);
        assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
    }
}
