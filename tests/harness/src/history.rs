//! Checks what several clients have seen: is there one order of all their transactions that explains it?
//!
//! The method is that of Elle: every value is appended once, to a list, and reads return whole lists. So the
//! longest read of a key tells the order in which its values were appended, and with it who came before whom:
//!
//! ```text
//!   A appended x right before B appended y              A -> B
//!   B read a list that ends with what A appended        A -> B
//!   A read a list that B's value is not in yet          A -> B
//!   A had its reply before B was sent                   A -> B
//! ```
//!
//! If these arrows lead in a circle, no order explains them: the history is not strictly serializable. Reads
//! that are no beginning of the longest one, values that were acknowledged and are missing, values of
//! transactions that were not executed, and values that are there twice are found on the way.
//!
//! Cost: linear in operations, but for the lengths of the lists that were read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

/// What one operation of a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Appended this value, which nobody else appends, to this key.
    Append(String, u64),
    /// Read this key.
    Read(String, Vec<u64>),
}

/// Whether a transaction was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was.
    Done,
    /// It was not: EXEC found that a key had been changed.
    Refused,
    /// Nobody knows: an error, or the connection broke. Its reads are not known either.
    Unknown,
}

/// One transaction of one client; a single command is one, too.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Before its first command was sent.
    pub begun: Instant,
    /// After its last reply came.
    pub ended: Instant,
    /// What became of it.
    pub outcome: Outcome,
    /// What it did, in order.
    pub operations: Vec<Operation>,
}

/// What no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A value is in a list twice.
    Twice {
        /// The list.
        key: String,
        /// The value.
        value: u64,
    },
    /// A value was read that a refused transaction, or nobody, has appended.
    FromNowhere {
        /// The list.
        key: String,
        /// The value.
        value: u64,
    },
    /// Two reads of a key of which none is the beginning of the other.
    Contradiction {
        /// The list.
        key: String,
    },
    /// A value was acknowledged and is not in the last read of its key.
    Lost {
        /// The list.
        key: String,
        /// The value.
        value: u64,
    },
    /// So many transactions precede each other.
    Circle {
        /// Some of them, by their numbers in the history.
        transactions: Vec<usize>,
    },
}

/// A history, and the last read of every key, made when everybody was done.
#[derive(Debug, Default)]
pub struct History {
    /// In any order.
    pub transactions: Vec<Transaction>,
    /// The lists in the end.
    pub last: BTreeMap<String, Vec<u64>>,
}

impl History {
    /// Everything that no order explains; circles only if there is nothing else.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        let mut found = Vec::new();
        let writers = self.writers();
        for (key, list) in &self.last {
            self.check_list(key, list, &writers, &mut found);
        }
        self.check_reads(&mut found);
        self.check_acknowledged(&mut found);
        if found.is_empty() {
            found.extend(self.circle(&writers));
        }
        found
    }

    /// Who appended each value.
    fn writers(&self) -> HashMap<u64, usize> {
        let mut writers = HashMap::new();
        for (number, transaction) in self.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                if let Operation::Append(_, value) = operation {
                    writers.insert(*value, number);
                }
            }
        }
        writers
    }

    fn check_list(
        &self,
        key: &str,
        list: &[u64],
        writers: &HashMap<u64, usize>,
        found: &mut Vec<Anomaly>,
    ) {
        let mut seen = HashSet::new();
        for &value in list {
            let key = || key.to_owned();
            if !seen.insert(value) {
                found.push(Anomaly::Twice { key: key(), value });
            }
            let writer = writers
                .get(&value)
                .map(|&number| &self.transactions[number]);
            if writer.is_none_or(|writer| writer.outcome == Outcome::Refused) {
                found.push(Anomaly::FromNowhere { key: key(), value });
            }
        }
    }

    fn check_reads(&self, found: &mut Vec<Anomaly>) {
        let nothing = Vec::new();
        for (key, list) in self.reads().map(|(_, key, list)| (key, list)) {
            let last = self.last.get(key).unwrap_or(&nothing);
            if !last.starts_with(list) {
                found.push(Anomaly::Contradiction {
                    key: key.to_owned(),
                });
            }
        }
    }

    fn check_acknowledged(&self, found: &mut Vec<Anomaly>) {
        let last: HashMap<&str, HashSet<u64>> = self
            .last
            .iter()
            .map(|(key, list)| (key.as_str(), list.iter().copied().collect()))
            .collect();
        let done = |it: &&Transaction| it.outcome == Outcome::Done;
        for transaction in self.transactions.iter().filter(done) {
            for operation in &transaction.operations {
                if let Operation::Append(key, value) = operation
                    && !last
                        .get(key.as_str())
                        .is_some_and(|list| list.contains(value))
                {
                    found.push(Anomaly::Lost {
                        key: key.clone(),
                        value: *value,
                    });
                }
            }
        }
    }

    /// Reads of transactions that were executed, by number.
    fn reads(&self) -> impl Iterator<Item = (usize, &str, &Vec<u64>)> {
        let done = |(_, it): &(usize, &Transaction)| it.outcome != Outcome::Unknown;
        let transactions = self.transactions.iter().enumerate().filter(done);
        transactions.flat_map(|(number, transaction)| {
            transaction
                .operations
                .iter()
                .filter_map(move |operation| match operation {
                    Operation::Read(key, list) => Some((number, key.as_str(), list)),
                    Operation::Append(..) => None,
                })
        })
    }

    /// Transactions that precede each other.
    fn circle(&self, writers: &HashMap<u64, usize>) -> Option<Anomaly> {
        let mut arrows = Arrows::new(self.transactions.len());
        for list in self.last.values() {
            let order = list.iter().filter_map(|value| writers.get(value));
            order
                .clone()
                .zip(order.skip(1))
                .for_each(|(a, b)| arrows.add(*a, *b));
        }
        for (number, key, list) in self.reads() {
            if let Some(writer) = list.last().and_then(|value| writers.get(value)) {
                arrows.add(*writer, number);
            }
            let next = self.last.get(key).and_then(|last| last.get(list.len()));
            if let Some(writer) = next.and_then(|value| writers.get(value)) {
                arrows.add(number, *writer);
            }
        }
        self.add_time(&mut arrows);
        let left = arrows.in_circles();
        let transactions: Vec<usize> = left
            .into_iter()
            .filter(|&number| number < self.transactions.len())
            .collect();
        (!transactions.is_empty()).then_some(Anomaly::Circle { transactions })
    }

    /// Who had a reply comes before who was sent later: arrows to and from points of a line of time, so that
    /// there are not as many as pairs.
    fn add_time(&self, arrows: &mut Arrows) {
        let mut events: Vec<(Instant, bool, usize)> = Vec::new();
        for (number, transaction) in self.transactions.iter().enumerate() {
            events.push((transaction.begun, false, number));
            if transaction.outcome != Outcome::Unknown {
                events.push((transaction.ended, true, number));
            }
        }
        events.sort_unstable();
        let mut point: Option<usize> = None;
        for (_, is_end, number) in events {
            if is_end {
                let next = arrows.node();
                if let Some(point) = point {
                    arrows.add(point, next);
                }
                arrows.add(number, next);
                point = Some(next);
            } else if let Some(point) = point {
                arrows.add(point, number);
            }
        }
    }
}

/// A directed graph.
struct Arrows {
    from: Vec<Vec<usize>>,
    incoming: Vec<usize>,
}

impl Arrows {
    fn new(nodes: usize) -> Self {
        Self {
            from: vec![Vec::new(); nodes],
            incoming: vec![0; nodes],
        }
    }

    fn node(&mut self) -> usize {
        self.from.push(Vec::new());
        self.incoming.push(0);
        self.from.len() - 1
    }

    fn add(&mut self, from: usize, to: usize) {
        if from != to {
            self.from[from].push(to);
            self.incoming[to] += 1;
        }
    }

    /// Nodes that stand in circles, or behind them.
    fn in_circles(mut self) -> Vec<usize> {
        let mut free: Vec<usize> = (0..self.from.len())
            .filter(|&node| self.incoming[node] == 0)
            .collect();
        while let Some(node) = free.pop() {
            for &to in &self.from[node] {
                self.incoming[to] -= 1;
                if self.incoming[to] == 0 {
                    free.push(to);
                }
            }
        }
        (0..self.from.len())
            .filter(|&node| self.incoming[node] > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Transactions that begin and end at these milliseconds, and the lists in the end.
    fn history(
        transactions: &[(u64, u64, Outcome, &[Operation])],
        last: &[(&str, &[u64])],
    ) -> History {
        let zero = Instant::now();
        let at = |millis: u64| zero + Duration::from_millis(millis);
        let transactions = transactions
            .iter()
            .map(|(begun, ended, outcome, operations)| Transaction {
                begun: at(*begun),
                ended: at(*ended),
                outcome: *outcome,
                operations: operations.to_vec(),
            });
        let last = last
            .iter()
            .map(|(key, list)| ((*key).to_owned(), list.to_vec()));
        History {
            transactions: transactions.collect(),
            last: last.collect(),
        }
    }

    fn append(key: &str, value: u64) -> Operation {
        Operation::Append(key.to_owned(), value)
    }

    fn read(key: &str, list: &[u64]) -> Operation {
        Operation::Read(key.to_owned(), list.to_vec())
    }

    use Outcome::{Done, Refused, Unknown};

    #[test]
    fn one_behind_the_other_is_explained() {
        let history = history(
            &[
                (0, 1, Done, &[append("a", 1), append("b", 2)]),
                (
                    2,
                    3,
                    Done,
                    &[read("a", &[1]), append("a", 3), read("a", &[1, 3])],
                ),
                (2, 4, Refused, &[append("a", 4)]),
                (2, 9, Unknown, &[append("b", 5)]),
                (5, 6, Done, &[read("a", &[1, 3]), read("b", &[2])]),
                (5, 8, Done, &[read("b", &[2, 5])]),
            ],
            &[("a", &[1, 3]), ("b", &[2, 5])],
        );
        assert_eq!(history.anomalies(), []);
    }

    #[test]
    fn half_a_transaction_is_found() {
        let history = history(
            &[
                (0, 9, Done, &[append("a", 1), append("b", 2)]),
                (0, 9, Done, &[read("a", &[1]), read("b", &[])]),
            ],
            &[("a", &[1]), ("b", &[2])],
        );
        assert!(matches!(history.anomalies()[..], [Anomaly::Circle { .. }]));
    }

    #[test]
    fn an_update_from_an_old_value_is_found() {
        let both = &[read("a", &[]), append("a", 1)];
        let history = history(
            &[
                (0, 9, Done, both),
                (0, 9, Done, &[read("a", &[]), append("a", 2)]),
            ],
            &[("a", &[1, 2])],
        );
        assert!(matches!(history.anomalies()[..], [Anomaly::Circle { .. }]));
    }

    #[test]
    fn an_old_value_behind_a_new_one_is_found() {
        let history = history(
            &[
                (0, 1, Done, &[append("a", 1)]),
                (2, 3, Done, &[read("a", &[])]),
            ],
            &[("a", &[1])],
        );
        assert!(matches!(history.anomalies()[..], [Anomaly::Circle { .. }]));
    }

    #[test]
    fn two_readers_must_agree_on_the_order() {
        let history = history(
            &[
                (0, 9, Done, &[append("a", 1)]),
                (0, 9, Done, &[append("b", 2)]),
                (0, 9, Done, &[read("a", &[1]), read("b", &[])]),
                (0, 9, Done, &[read("a", &[]), read("b", &[2])]),
            ],
            &[("a", &[1]), ("b", &[2])],
        );
        assert!(matches!(history.anomalies()[..], [Anomaly::Circle { .. }]));
    }

    #[test]
    fn values_that_are_lost_doubled_or_of_nobody_are_found() {
        let history = history(
            &[
                (0, 1, Done, &[append("a", 1), append("a", 2)]),
                (0, 1, Refused, &[append("a", 3)]),
                (2, 3, Done, &[read("a", &[4])]),
            ],
            &[("a", &[1, 1, 3])],
        );
        let key = || "a".to_owned();
        let wanted = [
            Anomaly::Twice {
                key: key(),
                value: 1,
            },
            Anomaly::FromNowhere {
                key: key(),
                value: 3,
            },
            Anomaly::Contradiction { key: key() },
            Anomaly::Lost {
                key: key(),
                value: 2,
            },
        ];
        assert_eq!(history.anomalies(), wanted);
    }
}
