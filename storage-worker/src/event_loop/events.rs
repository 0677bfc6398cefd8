//! Keyspace events on their way from commands to the broker.
//!
//! Not here: what a command says (`notify`), the link (`broker`).

use super::core::Core;
use crate::engine::Engine;
use crate::notify::{self, Before, View, class};
use proto::catalogue::StorageCommand;
use proto::frame::{Args, RequestHeader};
use proto::settings::{EVENT_KEYEVENT, EVENT_KEYSPACE, Settings};

impl Core {
    /// Which events are wanted from here on.
    pub(crate) fn want_events(&mut self, settings: &Settings) {
        let wanted = settings.notify_keyspace_events();
        let has_channels = wanted & (EVENT_KEYSPACE | EVENT_KEYEVENT) != 0;
        let wanted = if has_channels { wanted } else { 0 };
        self.engine.effects.notes.want(wanted);
        self.is_careful = self.is_precise || wanted & class::MISS != 0;
    }

    /// Whether somebody wants to know what commands write: events, or who watches keys.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        !self.watching.is_empty() || self.engine.effects.notes.wanted() != 0
    }

    fn view(&self) -> View<'_> {
        View {
            keyspace: &self.engine.keyspace,
            near: self.engine.scripts.surroundings.near.as_deref(),
            hash_seed: self.engine.hash_seed(),
            now: self.now,
        }
    }

    /// What events need to know of the keys of a command before it runs, if any are wanted.
    #[inline]
    pub(crate) fn look_before(
        &self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) -> Option<Before> {
        if self.engine.effects.notes.wanted() == 0 {
            return None;
        }
        self.look_at_keys(request, command, body)
    }

    #[cold]
    fn look_at_keys(
        &self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) -> Option<Before> {
        let wanted = self.engine.effects.notes.wanted();
        if !Engine::writes(command) && wanted & class::MISS == 0 {
            return None;
        }
        let mut spans = Vec::new();
        let args = Args::new(body, request.argc, &mut spans).ok()?;
        Some(notify::before(
            command,
            request.database,
            args,
            &self.view(),
        ))
    }

    /// Notes the keys that a command has wanted to read and that are not there.
    pub(crate) fn note_misses(
        &self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
    ) {
        let notes = &self.engine.effects.notes;
        let mut spans = Vec::new();
        if notes.wanted() & class::MISS != 0
            && let Ok(args) = Args::new(body, request.argc, &mut spans)
        {
            notify::missed(notes, command, request.database, args, &self.view());
        }
    }

    /// Notes the events of a command that has run without an error; there were so many `changes` before it.
    #[cold]
    pub(crate) fn note_events(
        &mut self,
        request: &RequestHeader,
        command: StorageCommand,
        body: &[u8],
        changes: u64,
        before: &Before,
    ) {
        let mut spans = Vec::new();
        let Ok(args) = Args::new(body, request.argc, &mut spans) else {
            return;
        };
        let changes = self.engine.effects.changes.saturating_sub(changes);
        let (notes, view) = (&self.engine.effects.notes, self.view());
        notify::after(
            notes,
            command,
            request.database,
            args,
            changes,
            before,
            &view,
        );
    }

    /// Tells the broker what has been noted.
    #[cold]
    pub(crate) fn tell_notes(&mut self) {
        let notes = self.engine.effects.notes.clone();
        let list = notify::complete(notes.take(), notes.wanted(), &self.view());
        if let Some(broker) = &self.broker
            && broker.tell(&list, notes.wanted())
        {
            notes.keep();
        }
    }
}
