//! The table of a program that was run by hand, without `qspin run` to show it: one row per lock, on stderr, at
//! the end.
//!
//! Nothing is looked up in files here: the place where a lock is acquired is shown as a file and an offset in
//! it, which `addr2line` can name. And nothing is allocated: the program may be anywhere when it ends.

use core::fmt::{self, Write};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use super::{Row, SLOT};
use crate::sleep::system_call;
use crate::{rwlock, served};

/// Whether no command shows the table.
static BY_HAND: AtomicBool = AtomicBool::new(false);

pub(super) fn at_the_end() {
    BY_HAND.store(true, Relaxed);
}

/// How many rows are shown.
const SHOWN: usize = 12;

/// A piece of text, written out when it is full and when it ends. What stderr does not accept is lost.
struct Stderr {
    text: [u8; 512],
    length: usize,
}

impl Stderr {
    fn flush(&mut self) {
        let mut rest = &self.text[..self.length];
        while !rest.is_empty() {
            let arguments =
                [libc::STDERR_FILENO as u64, rest.as_ptr() as u64, rest.len() as u64, 0];
            // SAFETY: the bytes are valid for reading.
            let written = unsafe { system_call(libc::SYS_write, arguments) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                _ if written == -i64::from(libc::EINTR) => {}
                _ => break,
            }
        }
        self.length = 0;
    }
}

impl Write for Stderr {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.length == self.text.len() {
                self.flush();
            }
            if let Some(place) = self.text.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

/// What a row has counted since it was last reset.
fn since_reset(row: &Row) -> [u64; 3] {
    let now = [&row.acquisitions, &row.contended, &row.wait_ns];
    let mut counts = [0; 3];
    for (count, (now, before)) in counts.iter_mut().zip(now.iter().zip(&row.before)) {
        *count = now.load(Relaxed).wrapping_sub(before.load(Relaxed));
    }
    counts
}

/// Prints the table, if a lock was acquired and no command shows it. `map` is the process's memory map.
pub(super) fn table(map: &[u8]) {
    if !BY_HAND.load(Relaxed) {
        return;
    }
    let rows = || SLOT.rows.iter().filter(|row| since_reset(row)[0] > 0);
    let (locks, all) = rows().fold((0, [0; 2]), |(locks, [taken, contended]), row| {
        let [more, waits, _] = since_reset(row);
        (locks + 1, [taken + more, contended + waits])
    });
    if locks == 0 {
        return;
    }
    let mut out = Stderr { text: [0; 512], length: 0 };
    let [taken, contended] = all;
    let process = SLOT.head.process.load(Relaxed);
    let _ = writeln!(
        out,
        "qspin: process {process}: mutexes are served by {}{}{}; {locks} locks, {taken} acquisitions, {contended} of \
         them contended",
        served::name(),
        if rwlock::name().is_some() { ", reader-writer locks by " } else { "" },
        rwlock::name().unwrap_or_default(),
    );
    let _ = writeln!(
        out,
        "{:>18} {:>14} {:>12} {:>12} {:>14}  where",
        "lock", "acquisitions", "contended %", "waited ms", "longest us"
    );
    // The longest waited-for first, one after the other: there is no memory to sort them in.
    let mut last = (u64::MAX, u64::MAX, 0);
    for _ in 0..SHOWN {
        let mut next: Option<((u64, u64, usize), &Row)> = None;
        for (place, row) in SLOT.rows.iter().enumerate() {
            let [taken, _, waited] = since_reset(row);
            let key = (waited, taken, place);
            let is_later = (key.0, key.1) < (last.0, last.1)
                || (key.0, key.1) == (last.0, last.1) && key.2 > last.2;
            let is_first = |best: &(u64, u64, usize)| (key.0, key.1) > (best.0, best.1);
            if taken > 0 && is_later && next.as_ref().is_none_or(|(best, _)| is_first(best)) {
                next = Some((key, row));
            }
        }
        let Some((key, row)) = next else { break };
        last = key;
        show(&mut out, row, map);
    }
    if locks > SHOWN {
        let _ = writeln!(out, "and {} more, which were waited for less", locks - SHOWN);
    }
    out.flush();
}

fn show(out: &mut Stderr, row: &Row, map: &[u8]) {
    let [taken, contended, waited] = since_reset(row);
    match row.address.load(Relaxed) {
        0 => {
            let _ = write!(out, "{:>18}", "others");
        }
        address => {
            let _ = write!(out, "{address:>#18x}");
        }
    }
    let longest = row.longest_wait_ns.load(Relaxed);
    // In whole numbers: hundredths of a percent, tenths of a microsecond.
    let share = contended.saturating_mul(10_000) / taken.max(1);
    let (ms, us) = (waited / 100_000, longest / 100);
    let _ = write!(
        out,
        " {taken:>14} {:>9}.{:02} {:>10}.{} {:>12}.{}  ",
        share / 100,
        share % 100,
        ms / 10,
        ms % 10,
        us / 10,
        us % 10
    );
    let most = row.sites.iter().max_by_key(|[_, count]| count.load(Relaxed));
    // The call is before the address that it returns to.
    let site = most.map_or(0, |[site, _]| site.load(Relaxed)).saturating_sub(1);
    match place(map, site) {
        Some((file, offset)) => {
            let _ = writeln!(out, "{file}+{offset:#x}");
        }
        None => {
            let _ = writeln!(out, "{site:#x}");
        }
    }
}

/// The file that an address is in, and the offset in it, by a memory map.
fn place(map: &[u8], address: u64) -> Option<(&str, u64)> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    map.split(|byte| *byte == b'\n').find_map(|line| {
        let line = core::str::from_utf8(line).ok()?;
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        if !(start..end).contains(&address) {
            return None;
        }
        let offset = hexadecimal(fields.nth(1)?)?;
        let file = fields.nth(2)?.trim().rsplit('/').next()?;
        (!file.is_empty()).then_some((file, address - start + offset))
    })
}
