//! Builds everything a system needs, in an order that finds mistakes before anything is started:
//! limits, lock, addresses, memory.
//!
//! Not here: running it (`shell`).

use super::core::{Checks, Core};
use super::instance::Instance;
use super::layout::Layout;
use super::limits;
use super::listeners::Listeners;
use super::segments::Segments;
use crate::config::{self, Loaded};
use crate::exit::Failure;
use proto::registry::{Registry, even_slot_map};
use proto::settings::{Setting, Settings};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the supervisor holds while the system lives.
#[derive(Debug)]
pub struct Parts {
    /// Lock and control socket, if the data directory can be written.
    pub instance: Option<Instance>,
    /// Shape of the system.
    pub layout: Layout,
    /// Shared memory.
    pub segments: Segments,
    /// Listening sockets; gone once a shutdown has begun.
    pub listeners: Option<Listeners>,
    /// Addresses for people.
    pub addresses: Vec<String>,
    /// The registry as last published.
    pub registry: Registry,
    /// Who waits for the news that everything serves (`daemonize`).
    pub parent: Option<UnixStream>,
}

/// Builds it all.
///
/// # Errors
/// The first thing that cannot be had, with what to do about it.
pub fn build(loaded: Loaded, parent: Option<UnixStream>) -> Result<(Parts, Core), Failure> {
    let Loaded { mut settings, file } = loaded;
    let dir = settings.dir().to_string();
    std::env::set_current_dir(&dir).map_err(|error| {
        Failure::Configuration(format!("dir {dir}: {}", config::reason(&error)))
    })?;
    let cgroup = runtime::cgroup::limits();
    let layout = Layout::new(&settings, &runtime::cpus::allowed(), cgroup.cpus);
    let clients_max = prepare_clients(&layout, &mut settings)?;
    limits::check_memory(&layout, cgroup.memory_left)?;
    limits::raise_file_size(shm::arena::default_capacity())?;
    let port = u16::try_from(settings.port()).unwrap_or(0);
    let instance = Instance::create(Path::new(&dir), port)?;
    if instance.is_none() {
        tracing::warn!("cannot write to {dir}: 'sirocco status' will not find this server");
    }
    let listeners = Listeners::open(&settings, layout.gateway_threads)?;
    let registry = first_registry(&settings, &layout, file.as_deref())?;
    let databases = u16::try_from(settings.databases()).unwrap_or(u16::MAX);
    let segments = Segments::create(&layout, databases, &registry)?;
    write_pidfile(&settings)?;
    warn_about_settings(&settings);
    let checks = Checks {
        clients_max,
        directory: |path| config::directory(path).map(|_| ()),
    };
    let version = segments.registry().version();
    let core = Core::new(layout.places.clone(), settings, version, checks);
    let addresses = listeners.describe();
    let listeners = Some(listeners);
    Ok((
        Parts {
            instance,
            layout,
            segments,
            listeners,
            addresses,
            registry,
            parent,
        },
        core,
    ))
}

fn prepare_clients(layout: &Layout, settings: &mut Settings) -> Result<u64, Failure> {
    let wished = u64::try_from(settings.maxclients()).unwrap_or(0);
    let clients = limits::raise_descriptors(layout, wished)?;
    if let Some(notice) = clients.notice {
        tracing::warn!("{notice}");
    }
    settings
        .set_text(Setting::Maxclients, &clients.use_now.to_string())
        .map_err(|reason| Failure::Configuration(format!("maxclients: {reason}")))?;
    Ok(clients.possible)
}

fn first_registry(
    settings: &Settings,
    layout: &Layout,
    file: Option<&Path>,
) -> Result<Registry, Failure> {
    let failed = |error: std::io::Error| Failure::System(format!("cannot start: {error}"));
    let mut random = [0; 28];
    let mut source = fs::File::open("/dev/urandom").map_err(failed)?;
    std::io::Read::read_exact(&mut source, &mut random).map_err(failed)?;
    let (seed, id) = random.split_at(8);
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    Ok(Registry {
        settings: settings.changed(),
        hash_seed: seed
            .iter()
            .fold(0, |seed, byte| seed << 8 | u64::from(*byte)),
        slot_map: even_slot_map(layout.storage_workers),
        run_id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        started_unix_ms: u64::try_from(started.as_millis()).unwrap_or(u64::MAX),
        gateway_threads: layout.gateway_threads,
        storage_workers: layout.storage_workers,
        executable: executable.to_string_lossy().into_owned(),
        config_file: file
            .map(|file| file.to_string_lossy().into_owned())
            .unwrap_or_default(),
        supervisor_pid: std::process::id(),
        scripts: Vec::new(),
        script_flushes: 0,
        libraries: Vec::new(),
    })
}

fn write_pidfile(settings: &Settings) -> Result<(), Failure> {
    let path = settings.pidfile();
    if path.is_empty() {
        return Ok(());
    }
    // Redis goes on without it as well: a pid file is for others.
    if let Err(error) = fs::write(path, format!("{}\n", std::process::id())) {
        tracing::warn!("cannot write pidfile {path}: {}", config::reason(&error));
    }
    Ok(())
}

/// One line for settings of the file that do nothing here, and one for what this version lacks.
fn warn_about_settings(settings: &Settings) {
    let idle = proto::settings::TABLE.iter().filter(|row| {
        row.effect == proto::settings::Effect::None && !settings.is_default(row.setting)
    });
    let names: Vec<&str> = idle.map(|row| row.name).collect();
    if !names.is_empty() {
        tracing::warn!(
            "settings without effect in this version: {}",
            names.join(", ")
        );
    }
    if !settings.save().is_empty() {
        tracing::warn!("'save' is set, but this version keeps data in memory only");
    }
}
