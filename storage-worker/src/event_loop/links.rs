//! All links of a worker: turns in order, and those who wait in between.
//!
//! Not here: when to take a turn, when to sleep (`event_loop`).

use super::core::Core;
use super::link::{Link, LinkError, Turn};
use super::wake;
use proto::counters::WorkerCounter;

/// A link and where it stands.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) link: Link,
    /// Our place for it in our own news.
    pub(super) position: usize,
    pub(super) generation: u64,
    /// It had more than one batch, or waits for room: look at it again without news.
    pub(super) is_pending: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Served>);

impl Links {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a link, in place of an older one of its number.
    pub(super) fn add(&mut self, core: &mut Core, served: Served) {
        self.remove(core, served.link.id());
        self.0.push(served);
        let used = self.0.iter().map(|served| served.position + 1).max();
        core.party.news().set_links(used.unwrap_or(0));
    }

    /// Drops a link, and those of its clients who wait.
    pub(super) fn remove(&mut self, core: &mut Core, link: u32) {
        self.0.retain(|served| served.link.id() != link);
        core.waiters.remove_link(link);
        core.watching.remove_link(link);
        core.note_watchers();
        core.note_waiters();
    }

    /// Whether a turn would do something: a look at the rings themselves, not at the news. A peer that
    /// died between publishing and announcing must not leave a request lying.
    pub(super) fn have_work(&mut self) -> bool {
        let mut any = false;
        for served in &mut self.0 {
            if served.link.has_work() {
                served.is_pending = true;
                any = true;
            }
        }
        any
    }

    /// Takes all news and notes whose it is. News of a link that is not there (not yet, or no more) would
    /// keep us awake for nothing; a link that is added is looked at anyway.
    pub(super) fn note_news(&mut self, core: &Core) {
        core.party.news().take_each(|position| {
            let mut links = self.0.iter_mut();
            if let Some(served) = links.find(|served| served.position == position) {
                served.is_pending = true;
            }
        });
    }

    /// One batch of each link that has something, and after each those who wait for what it did.
    /// True if there is more to do.
    pub(super) fn serve(&mut self, core: &mut Core) -> bool {
        let mut is_more = false;
        self.look_after_waiters(core);
        let mut at = 0;
        while at < self.0.len() {
            let served = &mut self.0[at];
            let has_news = core.party.news().take(served.position);
            if !has_news && !served.is_pending {
                at += 1;
                continue;
            }
            match served.serve(core) {
                Ok(turn) => {
                    served.is_pending = turn == Turn::Busy;
                    is_more |= turn == Turn::Busy;
                    at += 1;
                }
                Err(error) => self.drop_broken(core, at, &error),
            }
            if core.is_signalled() {
                wake::serve_ready(core, &mut self.0);
            }
        }
        is_more
    }

    /// Those who wait and are not woken by a command: their time is over, there is room for a reply
    /// at last, or they have come back late.
    #[inline]
    fn look_after_waiters(&mut self, core: &mut Core) {
        if core.has_overdue() {
            wake::end_waits(core, &mut self.0);
        }
        if core.has_unserved() {
            wake::welcome(core, &mut self.0);
            wake::serve_ready(core, &mut self.0);
        }
    }

    /// Hears from every link who waited at the predecessor; true if anything was heard.
    pub(super) fn resume(&mut self, core: &mut Core) -> bool {
        let mut is_busy = false;
        let mut at = 0;
        while at < self.0.len() {
            let served = &mut self.0[at];
            let _ = core.party.news().take(served.position);
            match served.link.resume(core) {
                Ok(any) => {
                    is_busy |= any;
                    at += 1;
                }
                Err(error) => self.drop_broken(core, at, &error),
            }
        }
        is_busy
    }

    /// Links whose peer has told everything.
    pub(super) fn told(&self) -> usize {
        let is_told = |served: &&Served| !served.link.is_resuming();
        self.0.iter().filter(is_told).count()
    }

    /// Ordinary requests are served from here on: takes in those who waited at the predecessor.
    pub(super) fn open(&mut self, core: &mut Core) {
        wake::welcome(core, &mut self.0);
        wake::serve_ready(core, &mut self.0);
        for served in &mut self.0 {
            served.is_pending = true;
        }
    }

    /// Where the replies of a link stand.
    #[cfg(test)]
    pub(super) fn reply_position(&self, link: u32) -> super::replies::ReplyPosition {
        let served = self.0.iter().find(|it| it.link.id() == link).unwrap();
        served.link.reply_position()
    }

    /// Drops a link that cannot be served any more.
    fn drop_broken(&mut self, core: &mut Core, at: usize, error: &LinkError) {
        let link = self.0[at].link.id();
        tracing::error!(link, %error, "link dropped: its ring is damaged");
        core.broken.push((link, self.0[at].generation));
        self.remove(core, link);
    }
}

impl Served {
    /// One turn of a link.
    fn serve(&mut self, core: &mut Core) -> Result<Turn, LinkError> {
        if self.link.is_resuming() {
            self.link.resume(core)?;
        }
        let turn = self.link.serve(core)?;
        if turn == Turn::Jammed {
            core.add(WorkerCounter::ReplyRingFull, 1);
        }
        Ok(turn)
    }
}
