//! Which links listen to something, and how many clients behind each.

/// Place of a link among those of the broker.
pub(crate) type LinkPlace = u16;

/// See the module. Most names have one link, which takes no memory of its own.
#[derive(Debug, Default)]
pub(crate) enum Holders {
    /// Nobody.
    #[default]
    None,
    /// One link, and its clients.
    One(LinkPlace, u32),
    /// Several.
    #[expect(clippy::box_collection, reason = "a name with one link stays small")]
    Many(Box<Vec<(LinkPlace, u32)>>),
}

impl Holders {
    /// So many more clients of a link.
    pub(crate) fn add(&mut self, link: LinkPlace, more: u32) {
        match self {
            Self::None => *self = Self::One(link, more),
            Self::One(known, count) if *known == link => *count = count.saturating_add(more),
            Self::One(known, count) => {
                *self = Self::Many(Box::new(vec![(*known, *count), (link, more)]));
            }
            Self::Many(all) => match all.iter_mut().find(|(known, _)| *known == link) {
                Some((_, count)) => *count = count.saturating_add(more),
                None => all.push((link, more)),
            },
        }
    }

    /// So many less; all of them if there are not as many.
    pub(crate) fn remove(&mut self, link: LinkPlace, less: u32) {
        match self {
            Self::One(known, count) if *known == link => {
                *count = count.saturating_sub(less);
                if *count == 0 {
                    *self = Self::None;
                }
            }
            Self::Many(all) => {
                for (known, count) in all.iter_mut() {
                    if *known == link {
                        *count = count.saturating_sub(less);
                    }
                }
                all.retain(|(_, count)| *count > 0);
                match all.as_slice() {
                    [] => *self = Self::None,
                    [(link, count)] => *self = Self::One(*link, *count),
                    _ => {}
                }
            }
            Self::None | Self::One(..) => {}
        }
    }

    /// Whether nobody listens.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// All links and their clients.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkPlace, u32)> + '_ {
        let (one, many) = match self {
            Self::None => (None, &[][..]),
            Self::One(link, count) => (Some((*link, *count)), &[][..]),
            Self::Many(all) => (None, all.as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// All clients.
    pub(crate) fn count(&self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).sum()
    }
}

const _: () = assert!(size_of::<Holders>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_up_and_down() {
        let mut holders = Holders::default();
        holders.add(3, 1);
        holders.add(3, 1);
        holders.add(5, 4);
        assert_eq!(holders.count(), 6);
        assert_eq!(holders.iter().collect::<Vec<_>>(), [(3, 2), (5, 4)]);
        holders.remove(3, u32::MAX);
        assert!(matches!(holders, Holders::One(5, 4)));
        holders.remove(7, 1);
        holders.remove(5, 4);
        assert!(holders.is_empty());
    }
}
