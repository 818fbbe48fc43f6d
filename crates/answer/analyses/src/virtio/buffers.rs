//! A buffer that is added to a queue: its lists of parts, with as many lengths as were recorded.

use super::events::AddFields;

/// Flags of a part (`SG_CHAIN`, `SG_END` of `include/linux/scatterlist.h`).
const GOES_ON_ELSEWHERE: u64 = 1;
const LAST: u64 = 2;
/// Indexes of fields ([`super::events::ADD_FIELDS`]).
const VQ: usize = 0;
const TOKEN: usize = 1;
const PARTS: usize = 2;
const OUT: usize = 3;
const IN: usize = 4;
const QUEUE_NAME: usize = 5;
const DEVICE_NAME: usize = 7;
/// Lists with recorded parts: index of their first flags and first length, and max number of parts.
const LISTS: [(usize, usize, usize); 3] = [(10, 16, 6), (22, 28, 6), (34, 35, 1)];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AddedBuffer {
    pub(super) vq: u64,
    pub(super) token: u64,
    /// Numbers of lists that the device reads (out) and writes (in).
    pub(super) lists: [u64; 2],
    /// Bytes of out and in lists; `None` if they were not recorded.
    pub(super) bytes: Option<[u64; 2]>,
    /// Whether some parts have no recorded length.
    pub(super) is_cut: bool,
    /// Recorded bytes of the first lists, and whether they are complete.
    by_list: [Option<(u64, bool)>; LISTS.len()],
    /// Bytes of the first part of the first list.
    pub(super) first_part: Option<u64>,
    /// Names of the queue and its device, with eight characters per number.
    pub(super) names: Option<[[u64; 2]; 2]>,
}

impl AddedBuffer {
    /// `None` if the queue or the buffer is unknown.
    pub(super) fn from_fields(fields: &AddFields) -> Option<Self> {
        let [out, in_] = [value(fields, OUT)?, value(fields, IN)?];
        let (vq, token) = (value(fields, VQ)?, value(fields, TOKEN)?);
        let mut buffer = Self { vq, token, ..Self::default() };
        buffer.lists = [out, in_];
        buffer.first_part = LISTS.first().and_then(|(_, lengths, _)| value(fields, *lengths));
        let name = |at| Some([value(fields, at)?, value(fields, at + 1)?]);
        buffer.names =
            name(QUEUE_NAME).zip(name(DEVICE_NAME)).map(|(queue, device)| [queue, device]);
        // Functions with a single list report the number of its parts, so flags are not needed.
        let parts = value(fields, PARTS);
        let lists = out.saturating_add(in_);
        buffer.is_cut = lists > LISTS.len() as u64;
        for (list, list_bytes) in (0..lists).zip(&mut buffer.by_list) {
            *list_bytes = bytes_of(fields, list, parts);
            let Some((bytes, is_whole)) = *list_bytes else {
                buffer.is_cut = true;
                continue;
            };
            buffer.is_cut |= !is_whole;
            let sums = buffer.bytes.get_or_insert([0; 2]);
            if let Some(sum) = sums.get_mut(usize::from(list >= out)) {
                *sum = sum.saturating_add(bytes);
            }
        }
        Some(buffer)
    }

    #[cfg(test)]
    pub(super) fn made(lists: [u64; 2], by_list: [Option<(u64, bool)>; LISTS.len()]) -> Self {
        let mut sums = [0; 2];
        for (list_bytes, list) in by_list.iter().zip(0..) {
            sums[usize::from(list >= lists[0])] += list_bytes.map_or(0, |(bytes, _)| bytes);
        }
        let is_cut =
            by_list.iter().any(|list_bytes| !list_bytes.is_some_and(|(_, is_whole)| is_whole));
        Self { lists, bytes: Some(sums), is_cut, by_list, ..Self::default() }
    }

    /// The only incomplete list: its direction and recorded bytes.
    fn cut_list(&self) -> Option<(usize, u64)> {
        let [out, in_] = self.lists;
        let those = (0..out.saturating_add(in_)).zip(&self.by_list);
        let mut missing =
            those.filter(|(_, list_bytes)| !list_bytes.is_some_and(|(_, is_whole)| is_whole));
        let (list, list_bytes) = missing.next().filter(|_| self.is_cut)?;
        let (bytes, _) = (*list_bytes)?;
        missing.next().is_none().then_some((usize::from(list >= out), bytes))
    }

    /// Whether one of its lists is complete and has this many bytes.
    pub(super) fn has_list_of(&self, bytes: u64) -> bool {
        self.by_list.contains(&Some((bytes, true)))
    }

    /// Whether the incomplete list can have this many bytes.
    pub(super) fn may_have(&self, bytes: u64) -> bool {
        self.cut_list().is_some_and(|(_, recorded)| recorded <= bytes)
    }

    /// Sets the size of the incomplete list.
    pub(super) fn complete(&mut self, bytes: u64) {
        let Some((direction, recorded)) =
            self.cut_list().filter(|(_, recorded)| *recorded <= bytes)
        else {
            return;
        };
        if let Some(sum) = self.bytes.as_mut().and_then(|sums| sums.get_mut(direction)) {
            *sum = sum.saturating_add(bytes - recorded);
            self.is_cut = false;
        }
    }
}

fn value(fields: &AddFields, at: usize) -> Option<u64> {
    fields.get(at).copied().flatten()
}

/// Recorded bytes of a list, and whether they are complete. `None` if nothing was recorded.
fn bytes_of(fields: &AddFields, list: u64, parts: Option<u64>) -> Option<(u64, bool)> {
    let (marks, lengths, recorded) = LISTS.get(usize::try_from(list).ok()?)?;
    let mut bytes = 0u64;
    for part in 0..*recorded {
        let (mark, length) = (value(fields, marks + part)?, value(fields, lengths + part)?);
        if mark & GOES_ON_ELSEWHERE != 0 {
            return Some((bytes, false));
        }
        bytes = bytes.saturating_add(length);
        let is_last = parts.map_or(mark & LAST != 0, |parts| part as u64 + 1 >= parts);
        if is_last {
            return Some((bytes, true));
        }
    }
    Some((bytes, false))
}

#[cfg(test)]
mod tests {
    use super::super::events::ADD_FIELDS;
    use super::*;

    #[test]
    fn fields_are_where_they_are_read() {
        let places =
            [VQ, TOKEN, PARTS, OUT, IN, QUEUE_NAME, QUEUE_NAME + 1, DEVICE_NAME, DEVICE_NAME + 1];
        let names = ["vq", "token", "parts", "out", "in", "n0", "n1", "d0", "d1"];
        assert_eq!(places.map(|at| ADD_FIELDS[at]), names);
        for ((marks, lengths, parts), list) in LISTS.into_iter().zip(["a", "b", "c"]) {
            for part in 0..parts {
                assert_eq!(ADD_FIELDS[marks + part], format!("m{list}{part}"));
                assert_eq!(ADD_FIELDS[lengths + part], format!("{list}{part}"));
            }
        }
    }

    fn fields(values: &[(&str, u64)]) -> AddFields {
        let mut fields = [None; ADD_FIELDS.len()];
        for (name, number) in values {
            fields[ADD_FIELDS.iter().position(|field| field == name).unwrap()] = Some(*number);
        }
        fields
    }

    fn buffer(values: &[(&str, u64)]) -> AddedBuffer {
        let known = [("vq", 1), ("token", 2)];
        AddedBuffer::from_fields(&fields(&[&known, values].concat())).unwrap()
    }

    #[test]
    fn lists_end_where_their_marks_say() {
        // A disk request: its header, two parts of data that the device reads, and a status byte that it writes.
        let disk = buffer(&[
            ("out", 2),
            ("in", 1),
            ("ma0", 0xc2),
            ("a0", 16),
            ("ma1", 0),
            ("a1", 99),
            ("mb0", 0x40),
            ("b0", 4096),
            ("mb1", 0x42),
            ("b1", 512),
            ("mc0", 2),
            ("c0", 1),
        ]);
        assert_eq!((disk.bytes, disk.is_cut), (Some([16 + 4096 + 512, 1]), false));
    }

    #[test]
    fn of_one_list_the_number_of_parts_is_known() {
        let parts =
            [("parts", 2), ("out", 1), ("in", 0), ("ma0", 0), ("a0", 12), ("ma1", 0), ("a1", 1500)];
        let sent = buffer(&parts);
        assert_eq!((sent.lists, sent.bytes, sent.is_cut), ([1, 0], Some([1512, 0]), false));
        // Not all parts were recorded.
        let longer = buffer(&[("parts", 3), ("out", 1), ("in", 0), ("ma0", 0), ("a0", 12)]);
        assert_eq!((longer.bytes, longer.is_cut), (None, true));
    }

    #[test]
    fn what_goes_on_elsewhere_or_is_not_recorded_is_said() {
        let chained =
            buffer(&[("out", 1), ("in", 0), ("ma0", 0), ("a0", 7), ("ma1", 1), ("a1", 0)]);
        assert_eq!((chained.bytes, chained.is_cut), (Some([7, 0]), true));
        let bare = buffer(&[("out", 1), ("in", 1)]);
        assert_eq!((bare.bytes, bare.is_cut, bare.names), (None, true, None));
        let mut request = buffer(&[
            ("out", 1),
            ("in", 2),
            ("ma0", 2),
            ("a0", 16),
            ("mb0", 0),
            ("b0", 4096),
            ("mb1", 1),
            ("b1", 0),
            ("mc0", 2),
            ("c0", 1),
        ]);
        assert_eq!((request.bytes, request.is_cut), (Some([16, 4097]), true));
        assert!(request.may_have(4096) && !request.may_have(4095) && !request.has_list_of(4096));
        request.complete(1 << 20);
        assert_eq!((request.bytes, request.is_cut), (Some([16, (1 << 20) + 1]), false));
        // An impossible number of lists.
        let wild = buffer(&[("out", u64::MAX), ("in", u64::MAX), ("ma0", 2), ("a0", 7)]);
        assert_eq!((wild.bytes, wild.is_cut), (Some([7, 0]), true));
    }
}
