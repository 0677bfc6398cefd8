//! What the broker decides: a frame in, frames out. No rings, no clock.
//!
//! Of a message the answer to its publisher goes first, so that a client which publishes to itself sees
//! the answer before the message, as with Redis.

use proto::frame::{
    BrokerFrame, BrokerHeader, BrokerKind, FrameError, Question, Space, broker_flags, push_name,
    split_name,
};
use proto::resp::ReplyWriter;

use crate::holders::{Holders, LinkPlace};
use crate::names::Names;
use crate::patterns::Patterns;

/// Where frames go.
pub(crate) trait Outgoing {
    /// Sends a frame over a link; one that is not there swallows it.
    fn send(&mut self, link: LinkPlace, header: &BrokerHeader, name: &[u8], body: &[&[u8]]);
}

/// Who gets a message.
#[derive(Debug)]
struct Target {
    link: LinkPlace,
    is_direct: bool,
    /// Patterns that fit: how many, and their list.
    count: u32,
    patterns: Vec<u8>,
}

/// Everybody who gets a message, without memory to be taken for each one.
#[derive(Debug, Default)]
struct Targets {
    all: Vec<Target>,
    used: usize,
}

impl Targets {
    fn of(&mut self, link: LinkPlace) -> &mut Target {
        let known = self.all[..self.used].iter().position(|it| it.link == link);
        let at = known.unwrap_or(self.used);
        if at == self.all.len() {
            self.all.push(Target {
                link,
                is_direct: false,
                count: 0,
                patterns: Vec::new(),
            });
        }
        let target = &mut self.all[at];
        if known.is_none() {
            self.used += 1;
            target.link = link;
            target.is_direct = false;
            target.count = 0;
            target.patterns.clear();
        }
        target
    }
}

/// Sums and levels for the statistics page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) published: u64,
    pub(crate) delivered: u64,
    pub(crate) channels: usize,
    pub(crate) patterns: usize,
    pub(crate) shard_channels: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Core {
    channels: Names,
    shard_channels: Names,
    patterns: Patterns,
    targets: Targets,
    published: u64,
    delivered: u64,
}

impl Core {
    /// Takes a frame that came over a link.
    pub(crate) fn take(
        &mut self,
        link: LinkPlace,
        frame: &BrokerFrame<'_>,
        out: &mut impl Outgoing,
    ) -> Result<(), FrameError> {
        let header = &frame.header;
        match header.kind {
            BrokerKind::Subscribe => {
                match header.space {
                    Space::Channel => self.channels.add(frame.name, link, header.count),
                    Space::Shard => self.shard_channels.add(frame.name, link, header.count),
                    Space::Pattern => self.patterns.add(frame.name, link, header.count),
                }
                if header.flags & broker_flags::ANSWER != 0 {
                    out.send(link, &answer(header, 0), b"", &[]);
                }
            }
            BrokerKind::Unsubscribe => match header.space {
                Space::Channel => self.channels.remove(frame.name, link, header.count),
                Space::Shard => self.shard_channels.remove(frame.name, link, header.count),
                Space::Pattern => self.patterns.remove(frame.name, link, header.count),
            },
            BrokerKind::Publish => self.publish(link, frame, out),
            BrokerKind::Ask => self.ask(link, frame, out)?,
            BrokerKind::Restored => {}
            BrokerKind::Piece | BrokerKind::Answer | BrokerKind::Message => {
                return Err(FrameError::Kind(header.kind as u8));
            }
        }
        Ok(())
    }

    /// Nobody behind this link listens any more.
    pub(crate) fn drop_link(&mut self, link: LinkPlace) {
        self.channels.remove_link(link);
        self.shard_channels.remove_link(link);
        self.patterns.remove_link(link);
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            published: self.published,
            delivered: self.delivered,
            channels: self.channels.len(),
            patterns: self.patterns.len(),
            shard_channels: self.shard_channels.len(),
        }
    }

    fn publish(&mut self, link: LinkPlace, frame: &BrokerFrame<'_>, out: &mut impl Outgoing) {
        let Self {
            channels,
            shard_channels,
            patterns,
            targets,
            ..
        } = self;
        targets.used = 0;
        let mut receivers = 0;
        let direct = match frame.header.space {
            Space::Shard => shard_channels.get(frame.name),
            Space::Channel | Space::Pattern => channels.get(frame.name),
        };
        if let Some(direct) = direct {
            receivers += direct.count();
            for (link, _) in direct.iter() {
                targets.of(link).is_direct = true;
            }
        }
        if frame.header.space == Space::Channel {
            patterns.matching(frame.name, |pattern, holders| {
                receivers += holders.count();
                for (link, _) in holders.iter() {
                    let target = targets.of(link);
                    target.count += 1;
                    push_name(&mut target.patterns, pattern);
                }
            });
        }
        self.published += 1;
        if frame.header.flags & broker_flags::ANSWER != 0 {
            let count = u32::try_from(receivers).unwrap_or(u32::MAX);
            out.send(link, &answer(&frame.header, count), b"", &[]);
        }
        let Targets { all, used } = &self.targets;
        for target in &all[..*used] {
            let header = BrokerHeader {
                flags: if target.is_direct {
                    broker_flags::DIRECT
                } else {
                    0
                },
                count: target.count,
                ..BrokerHeader::new(BrokerKind::Message, frame.header.space)
            };
            out.send(
                target.link,
                &header,
                frame.name,
                &[&target.patterns, frame.body],
            );
            self.delivered += 1;
        }
    }

    fn ask(
        &mut self,
        link: LinkPlace,
        frame: &BrokerFrame<'_>,
        out: &mut impl Outgoing,
    ) -> Result<(), FrameError> {
        let header = &frame.header;
        let question = Question::from_u32(header.count).ok_or(FrameError::Kind(0))?;
        let names = match header.space {
            Space::Shard => &self.shard_channels,
            Space::Channel | Space::Pattern => &self.channels,
        };
        let mut reply = Vec::new();
        let mut writer = ReplyWriter::to_vec(&mut reply, false);
        match question {
            Question::Names => {
                let has_pattern = header.flags & broker_flags::PATTERN != 0;
                let fits =
                    |name: &&[u8]| !has_pattern || proto::glob::matches(frame.name, name, false);
                let found: Vec<&[u8]> = names.iter().filter(fits).collect();
                writer.array(found.len());
                found.into_iter().for_each(|name| writer.bulk(name));
            }
            Question::Counts => {
                let mut asked = Vec::new();
                let mut rest = frame.body;
                while let Some((name, behind)) = split_name(rest) {
                    asked.push(name);
                    rest = behind;
                }
                writer.array(asked.len() * 2);
                for name in asked {
                    writer.bulk(name);
                    let count = names.get(name).map_or(0, Holders::count);
                    writer.int(i64::try_from(count).unwrap_or(i64::MAX));
                }
            }
            Question::Patterns => writer.count(self.patterns.len()),
        }
        out.send(link, &answer(header, 0), b"", &[&reply]);
        Ok(())
    }
}

/// The answer to a frame.
fn answer(to: &BrokerHeader, count: u32) -> BrokerHeader {
    BrokerHeader {
        kind: BrokerKind::Answer,
        flags: 0,
        count,
        ..*to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::frame::{broker_frame_len, write_broker_frame};

    #[derive(Default)]
    struct Sent(Vec<String>);

    impl Outgoing for Sent {
        fn send(&mut self, link: LinkPlace, header: &BrokerHeader, name: &[u8], body: &[&[u8]]) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", " ");
            let body = text(&body.concat());
            let line = match header.kind {
                BrokerKind::Answer => format!("{link} answer {} {body}", header.count),
                BrokerKind::Message => {
                    let is_direct = header.flags & broker_flags::DIRECT != 0;
                    format!(
                        "{link} {} {is_direct} {} {body:?}",
                        text(name),
                        header.count
                    )
                }
                other => format!("{other:?}"),
            };
            self.0.push(line.trim_end().to_owned());
        }
    }

    struct Story(Core);

    impl Story {
        fn say(
            &mut self,
            link: LinkPlace,
            header: BrokerHeader,
            name: &str,
            body: &[u8],
        ) -> Vec<String> {
            let mut bytes = vec![0; broker_frame_len(name.as_bytes(), &[body])];
            assert!(write_broker_frame(
                &mut bytes,
                &header,
                name.as_bytes(),
                &[body]
            ));
            let mut sent = Sent::default();
            let frame = BrokerFrame::decode(&bytes).unwrap();
            self.0.take(link, &frame, &mut sent).unwrap();
            sent.0
        }

        fn count(
            &mut self,
            link: LinkPlace,
            kind: BrokerKind,
            space: Space,
            name: &str,
            count: u32,
        ) {
            let header = BrokerHeader {
                count,
                ..BrokerHeader::new(kind, space)
            };
            self.say(link, header, name, b"");
        }

        fn publish(&mut self, space: Space, name: &str) -> Vec<String> {
            let header = BrokerHeader {
                flags: broker_flags::ANSWER,
                ..BrokerHeader::new(BrokerKind::Publish, space)
            };
            self.say(9, header, name, b"hi")
        }
    }

    #[test]
    fn a_message_goes_once_to_each_link_and_counts_all_clients() {
        let mut story = Story(Core::default());
        use BrokerKind::{Subscribe, Unsubscribe};
        story.count(0, Subscribe, Space::Channel, "news", 2);
        story.count(1, Subscribe, Space::Channel, "news", 1);
        story.count(1, Subscribe, Space::Pattern, "n*", 3);
        story.count(2, Subscribe, Space::Shard, "news", 1);
        assert_eq!(
            story.publish(Space::Channel, "news"),
            [
                "9 answer 6",
                "0 news true 0 \"hi\"",
                "1 news true 1 \"\\u{2}\\0\\0\\0n*hi\""
            ]
        );
        assert_eq!(
            story.publish(Space::Shard, "news"),
            ["9 answer 1", "2 news true 0 \"hi\""]
        );
        assert_eq!(story.publish(Space::Channel, "other"), ["9 answer 0"]);
        story.count(0, Unsubscribe, Space::Channel, "news", 2);
        story.0.drop_link(1);
        assert_eq!(story.publish(Space::Channel, "news"), ["9 answer 0"]);
        assert_eq!(
            story.0.figures(),
            Figures {
                published: 4,
                delivered: 3,
                shard_channels: 1,
                ..Figures::default()
            }
        );
    }

    #[test]
    fn questions_are_answered_in_resp() {
        let mut story = Story(Core::default());
        story.count(0, BrokerKind::Subscribe, Space::Channel, "abc", 2);
        story.count(0, BrokerKind::Subscribe, Space::Channel, "xyz", 1);
        story.count(0, BrokerKind::Subscribe, Space::Pattern, "*", 2);
        let ask = |question: Question, flags| BrokerHeader {
            count: question as u32,
            flags,
            ..BrokerHeader::new(BrokerKind::Ask, Space::Channel)
        };
        let mut list = Vec::new();
        push_name(&mut list, b"abc");
        push_name(&mut list, b"none");
        assert_eq!(
            story.say(0, ask(Question::Names, broker_flags::PATTERN), "a*", b""),
            ["0 answer 0 *1 $3 abc"]
        );
        assert_eq!(
            story.say(0, ask(Question::Counts, 0), "", &list),
            ["0 answer 0 *4 $3 abc :2 $4 none :0"]
        );
        assert_eq!(
            story.say(0, ask(Question::Patterns, 0), "", b""),
            ["0 answer 0 :1"]
        );
    }
}
