//! DEBUG subcommands that look at the data, or make some: they ask the workers.

use proto::CommandError;
use proto::catalogue::Merge;
use proto::counters::{DatabaseCounter, worker_page};
use proto::number::parse_i64;
use proto::slot::{SLOT_COUNT, slot_of};

use crate::call::Call;
use crate::core::{Core, Flow};
use crate::gather::Finish;
use crate::internal::{self, Request};
use crate::steps::Steps;

fn join(merge: Merge) -> Finish {
    Finish::Join {
        merge,
        order: Vec::new(),
    }
}

/// DEBUG OBJECT key, and others that look at one key: the owner answers `command`.
pub(super) fn key(core: &mut Core, call: &Call<'_>) -> Flow {
    let key = call.arg(2);
    let slot = slot_of(key);
    let worker = core.lanes.owner(slot);
    if !core.lanes.is_usable(worker) {
        return core.unavailable(call.index, worker);
    }
    let (command, arguments) = if call.is(1, "OBJECT") {
        (internal::DEBUG_OBJECT, vec![key.to_vec()])
    } else {
        let word = call.arg(1).to_vec();
        (internal::DEBUG_KEY, vec![word, key.to_vec()])
    };
    let request = Request {
        command,
        worker,
        slot,
        database: None,
        for_client: true,
        arguments,
    };
    let ticket = core.answer_later(call.index);
    core.send_step(ticket, vec![request], join(Merge::First));
    Flow::Stop
}

/// DEBUG DIGEST
pub(super) fn digest(core: &mut Core, call: &Call<'_>) -> Flow {
    let finish = Finish::Step(Box::new(Steps::Digest));
    core.send_to_all(call.index, internal::DIGEST, &[], finish)
}

/// DEBUG DIGEST-VALUE [key ...]
pub(super) fn digest_value(core: &mut Core, call: &Call<'_>) -> Flow {
    let keys: Vec<Vec<u8>> = call.args(2).map(<[u8]>::to_vec).collect();
    if keys.is_empty() {
        return core.reply(call.index, |reply| reply.array(0));
    }
    let (requests, order) = core.by_worker(internal::DIGEST_VALUE, &keys, 1);
    let mut workers = requests.iter().map(|request| request.worker);
    if let Some(worker) = workers.find(|&worker| !core.lanes.is_usable(worker)) {
        return core.unavailable(call.index, worker);
    }
    let ticket = core.answer_later(call.index);
    let finish = Finish::Join {
        merge: Merge::Zip,
        order,
    };
    core.send_step(ticket, requests, finish);
    Flow::Stop
}

/// DEBUG POPULATE count [prefix [size]]: each worker makes the keys that it owns.
pub(super) fn populate(core: &mut Core, call: &Call<'_>) -> Flow {
    let mut numbers = [0; 2];
    for (number, position) in numbers.iter_mut().zip([2, 4]) {
        if position >= call.len() {
            continue;
        }
        *number = match parse_i64(call.arg(position)) {
            Some(number @ 0..) => number,
            _ => return core.error(call.index, &CommandError::NotPositive),
        };
    }
    let workers = core.lanes.workers();
    if let Some(worker) = (0..workers).find(|&worker| !core.lanes.is_usable(worker)) {
        return core.unavailable(call.index, worker);
    }
    let [count, size] = numbers.map(|number| number.to_string().into_bytes());
    let prefix: &[u8] = if call.len() > 3 { call.arg(3) } else { b"key" };
    let mut requests: Vec<Request> = (0..workers)
        .map(|worker| Request {
            command: internal::POPULATE,
            worker,
            slot: 0,
            database: None,
            for_client: true,
            arguments: vec![count.clone(), prefix.to_vec(), size.clone()],
        })
        .collect();
    let mut first = 0;
    while first < SLOT_COUNT {
        let last = core.lanes.end_of_range(first);
        let owner = core.lanes.owner(first);
        if let Some(request) = requests.get_mut(owner) {
            let ends = [first, last].map(|slot| slot.to_string().into_bytes());
            request.arguments.extend(ends);
        }
        first = last + 1;
    }
    requests.retain(|request| request.arguments.len() > 3);
    let ticket = core.answer_later(call.index);
    core.send_step(ticket, requests, join(Merge::AllOk));
    Flow::Stop
}

/// DEBUG HTSTATS database [FULL]
pub(super) fn tables(core: &mut Core, call: &Call<'_>) -> Flow {
    let Some(number) = parse_i64(call.arg(2)) else {
        return core.error(call.index, &CommandError::NotAnInteger);
    };
    let database = u16::try_from(number).ok();
    let Some(database) = database.filter(|&database| database < core.live.databases) else {
        let text = b"ERR Out of range database";
        return core.error(call.index, &CommandError::Line(text[..].into()));
    };
    let count = |counter| {
        let place = worker_page::database(database, counter);
        let workers = 0..core.lanes.workers();
        let counts = workers.map(|worker| core.lanes.counter_of(worker, place));
        counts.sum::<u64>()
    };
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n number of elements: {}\n\
         [Expires HT]\nHash table 0 stats (main hash table):\n number of elements: {}\n",
        count(DatabaseCounter::Keys),
        count(DatabaseCounter::Expires),
    );
    core.reply(call.index, |reply| reply.verbatim("txt", text.as_bytes()))
}
