//! The few lines that greet an operator: what runs, where, how to connect.

use crate::supervisor::core::Core;
use crate::supervisor::layout::Layout;
use proto::settings::Settings;
use runtime::plan::Role;

/// The banner of a running system.
pub fn text(layout: &Layout, core: &Core, addresses: &[String]) -> String {
    let pids = |role: Role| {
        let of_role = core
            .processes()
            .iter()
            .filter(|process| process.place.role == role);
        let pids: Vec<String> = of_role.map(|process| process.pid.to_string()).collect();
        match pids.as_slice() {
            [one] => format!("pid {one}"),
            [first, .., last] => format!("pids {first} to {last}"),
            [] => String::new(),
        }
    };
    let count = |number: u32, what: &str| {
        if number == 1 {
            format!("1 {what}")
        } else {
            format!("{number} {what}s")
        }
    };
    let cores = if layout.cores == 1 {
        "1 core"
    } else {
        &format!("{} cores", layout.cores)
    };
    let pinned = if layout.is_pinned {
        "each bound to its own"
    } else {
        "placed by the kernel"
    };
    let gateway = format!(
        "{}, {}",
        count(layout.gateway_threads, "thread"),
        pids(Role::Gateway)
    );
    let storage = format!(
        "{}, {}",
        count(layout.storage_workers, "worker"),
        pids(Role::StorageWorker)
    );
    [
        format!(
            "Sirocco {}, supervisor pid {}",
            env!("CARGO_PKG_VERSION"),
            std::process::id()
        ),
        format!("  gateway    {gateway}"),
        format!("  storage    {storage}"),
        format!("  pub/sub    {}", pids(Role::Broker)),
        format!("  machine    {cores}, {pinned}"),
        format!("  listening  {}", addresses.join("  ")),
        format!("  connect    {}", how_to_connect(core.settings())),
    ]
    .join("\n")
}

fn how_to_connect(settings: &Settings) -> String {
    let port = settings.port();
    let password = if settings.requirepass().is_empty() {
        ""
    } else {
        " -a <password>"
    };
    if port == 0 {
        return format!("redis-cli -s {}{password}", settings.unixsocket());
    }
    format!("redis-cli -p {port}{password}    look inside: sirocco status --port {port}")
}
