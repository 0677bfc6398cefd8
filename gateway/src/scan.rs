//! SCAN over several workers.
//!
//! A cursor names a slot and a place in it; slots are walked upwards, so the worker that owns the slot
//! answers. Behind the last slot of its range the scan goes on with the next worker: in the same call as
//! long as fewer keys than COUNT were found, so that a small database is one page however many workers
//! there are; otherwise the client's next cursor leads there.

use proto::CommandError;
use proto::catalogue::StorageCommand;
use proto::frame::RequestHeader;
use proto::number::{parse_i64, parse_u64};
use proto::slot::SLOT_COUNT;

use crate::call::Call;
use crate::core::{Core, Flow, Ticket};
use crate::gather::{BadPart, Finish, Gather, array, bulk, push_header, reply_len};
use crate::internal::Request;

/// Keys that a page should have if the client does not say.
const COUNT_DEFAULT: i64 = 10;

/// A page that is being collected.
#[derive(Debug)]
pub(crate) struct Scan {
    /// A slot of the worker that was asked last.
    slot: u16,
    command: StorageCommand,
    database: u16,
    /// Arguments behind the cursor.
    options: Vec<Vec<u8>>,
    wanted: i64,
    found: i64,
    /// RESP bytes of the keys found.
    keys: Vec<u8>,
}

impl Core {
    /// SCAN cursor [options ...]
    pub(crate) fn scan(&mut self, call: &Call<'_>, command: StorageCommand) -> Flow {
        let Some(cursor) = proto::cursor::parse(call.arg(1)) else {
            return self.error(call.index, &CommandError::InvalidCursor);
        };
        let slot = proto::cursor::slot(cursor);
        let worker = self.lanes.owner(slot);
        if !self.lanes.is_usable(worker) {
            return self.unavailable(call.index, worker);
        }
        if let Some(wait) = self.wait_for_room_or_earlier(call, worker) {
            return wait;
        }
        let count = (2..call.len()).find(|&at| call.is(at, "COUNT"));
        let count = count.and_then(|at| parse_i64(call.arg(at + 1)));
        let scan = Scan {
            slot,
            command,
            database: self
                .get(call.index)
                .map_or(0, |connection| connection.database),
            options: call.args(2).map(<[u8]>::to_vec).collect(),
            wanted: count.unwrap_or(COUNT_DEFAULT),
            found: 0,
            keys: Vec::new(),
        };
        let finish = Finish::Cursor(Box::new(scan));
        let Some(header) = self.gather(call, command, 1, finish) else {
            return Flow::Stop;
        };
        self.send_or_keep(worker, RequestHeader { slot, ..header }, call.args(1));
        self.after_parts(call.index)
    }

    /// A worker has answered: on to the next one, or to the client.
    pub(crate) fn next_page(&mut self, ticket: Ticket, gather: Gather) {
        let page = gather.part(0).to_vec();
        let Finish::Cursor(mut scan) = gather.finish else {
            return;
        };
        if page.first() == Some(&b'-') {
            return self.deliver(ticket, &page);
        }
        let Ok(mut cursor) = scan.take(&page) else {
            tracing::error!("a page of SCAN is none");
            let mut reply = Vec::new();
            CommandError::Internal.write_resp(&mut reply);
            return self.deliver(ticket, &reply);
        };
        let end = self.lanes.end_of_range(scan.slot);
        if cursor == 0 || proto::cursor::slot(cursor) > end {
            if end + 1 >= SLOT_COUNT {
                cursor = 0;
            } else {
                cursor = proto::cursor::start_of(end + 1);
                let worker = self.lanes.owner(end + 1);
                if scan.found < scan.wanted && self.lanes.is_usable(worker) {
                    return self.ask_next(ticket, scan, worker, end + 1);
                }
            }
        }
        self.deliver(ticket, &scan.reply(cursor));
    }

    fn ask_next(&mut self, ticket: Ticket, mut scan: Box<Scan>, worker: usize, slot: u16) {
        let cursor = proto::cursor::start_of(slot).to_string().into_bytes();
        let mut arguments = vec![cursor];
        arguments.extend_from_slice(&scan.options);
        scan.slot = slot;
        let request = Request {
            command: scan.command,
            worker,
            slot,
            database: Some(scan.database),
            for_client: true,
            arguments,
        };
        self.send_step(ticket, vec![request], Finish::Cursor(scan));
    }
}

impl Scan {
    /// Takes the keys of a page; returns its cursor.
    fn take(&mut self, page: &[u8]) -> Result<u64, BadPart> {
        let (_, 2, elements) = array(page).ok_or(BadPart)? else {
            return Err(BadPart);
        };
        let len = reply_len(elements).ok_or(BadPart)?;
        let text = bulk(elements).flatten().ok_or(BadPart)?;
        let (_, count, keys) = array(elements.get(len..).ok_or(BadPart)?).ok_or(BadPart)?;
        self.found += count;
        self.keys.extend_from_slice(keys);
        parse_u64(text).ok_or(BadPart)
    }

    fn reply(&self, cursor: u64) -> Vec<u8> {
        let mut reply = Vec::with_capacity(self.keys.len() + 64);
        push_header(&mut reply, b'*', 2);
        let text = cursor.to_string();
        push_header(
            &mut reply,
            b'$',
            i64::try_from(text.len()).unwrap_or_default(),
        );
        reply.extend_from_slice(text.as_bytes());
        reply.extend_from_slice(b"\r\n");
        push_header(&mut reply, b'*', self.found);
        reply.extend_from_slice(&self.keys);
        reply
    }
}
