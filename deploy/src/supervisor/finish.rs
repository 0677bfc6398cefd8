//! Errands of the supervisor on files: tell others that it is ready, rewrite the configuration file,
//! leave nothing behind.

use super::boot::Parts;
use crate::config::reason;
use proto::settings::{self, Settings, Supervised};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Tells the parent of a daemon and the service manager that everything serves.
pub fn tell_ready(parts: &mut Parts, settings: &Settings) {
    if let Some(mut parent) = parts.parent.take() {
        // A parent that has been killed does not wait. Shutting down, because there is a second
        // descriptor of this socket (for failures) that lives as long as the system.
        let _ = parent.write_all(b"ok");
        let _ = parent.shutdown(std::net::Shutdown::Write);
    }
    let wished = matches!(
        settings.supervised(),
        Supervised::Systemd | Supervised::Auto
    );
    if let (true, Ok(address)) = (wished, std::env::var("NOTIFY_SOCKET"))
        && let Err(error) = notify(&address, b"READY=1\nSTATUS=Ready to accept connections\n")
    {
        tracing::warn!("cannot tell the service manager: {}", reason(&error));
    }
}

/// Sends a datagram to a service manager's socket, whose name may be abstract (`@` in front).
fn notify(address: &str, message: &[u8]) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let address = match address.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address)?;
    Ok(())
}

/// CONFIG REWRITE: a complete new file takes the place of the old one, or nothing changes.
///
/// # Errors
/// The text of the error reply without its first word.
pub fn rewrite_config(parts: &Parts, settings: &Settings) -> Result<String, String> {
    let name = &parts.registry.config_file;
    if name.is_empty() {
        return Err("The server is running without a config file".to_string());
    }
    let path = Path::new(name);
    let written = fs::read_to_string(path)
        .or_else(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                Ok(String::new())
            } else {
                Err(error)
            }
        })
        .and_then(|old| replace(path, &settings::rewrite(&old, settings)));
    match written {
        Ok(()) => Ok("OK".to_string()),
        Err(error) => {
            tracing::warn!("CONFIG REWRITE failed: {error}");
            Err(format!("Rewriting config file: {}", reason(&error)))
        }
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = File::create(&new)?;
    let result = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| match fs::metadata(path) {
            Ok(old) => fs::set_permissions(&new, old.permissions()),
            Err(_) => Ok(()),
        })
        .and_then(|()| fs::rename(&new, path));
    if result.is_err() {
        let _ = fs::remove_file(&new);
    }
    result?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Removes the files of a system that has ended.
pub fn clean_up(parts: &Parts) {
    let Ok(settings) = parts.registry.typed_settings() else {
        return;
    };
    for path in [settings.pidfile(), settings.unixsocket()] {
        if !path.is_empty() {
            let _ = fs::remove_file(path);
        }
    }
}
