//! A storage worker that follows its supervisor and serves nobody: it stands in until `storage_worker` has an
//! entry point of its own.

use runtime::{Child, ChildEvent, FromChild};

/// Follows the supervisor as a storage worker.
///
/// # Errors
/// Never.
pub fn storage_worker(child: Child) -> Result<(), String> {
    follow(&child)
}

fn follow(child: &Child) -> Result<(), String> {
    let sender = child.sender();
    let mut events = child.events();
    let said = |error: runtime::ControlError| error.to_string();
    sender.send(&FromChild::Ready).map_err(said)?;
    loop {
        match events.next_event() {
            ChildEvent::AttachLink(link) => {
                let (link, generation) = (link.plan.link, link.plan.generation);
                tracing::debug!(link, generation, "attached");
                sender
                    .send(&FromChild::Attached { link, generation })
                    .map_err(said)?;
            }
            ChildEvent::Registry { version, .. } => {
                sender
                    .send(&FromChild::RegistrySeen { version })
                    .map_err(said)?;
            }
            ChildEvent::Drain { .. } => {
                let _ = sender.send(&FromChild::Drained);
                return Ok(());
            }
            event => tracing::debug!(?event, "heard"),
        }
    }
}
