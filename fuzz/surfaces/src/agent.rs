//! The streams of an agent, or of a malicious guest: messages on the control stream, including
//! pieces of kernel code, and page headers with pages.

use std::convert::Infallible;
use std::path::Path;

use channel::wire::{
    CodePiece, ControlDecoder, CpuUse, DeviceRange, GuestHello, GuestView, MAX_PAGES_BYTES,
    MAX_PAYLOAD_BYTES, Message, PAGE_HEAD_BYTES, PageDecoder, PageHead, Piece, TaskUse, Text,
    TextKind, ViewRequest, encode,
};
use raw_bytes::ByteOrder;
use sampler::KeptCode;
use symbols::KernelCode;
use sys::FileMap;

/// The session that the host chose.
const SESSION: u64 = 7;
/// `EM_X86_64`.
const X86_64: u16 = 62;
/// Bytes of a control message header.
const HEAD_BYTES: usize = 24;

/// The first byte decides how the rest arrives: in pieces of this many bytes, and on which stream.
pub fn run(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let at_once = usize::from(first >> 1) + 1;
    if first & 1 == 0 { control(bytes, at_once) } else { pages(bytes, at_once) }
}

/// The decoded messages do not depend on how the bytes arrive, and encode to the same bytes. Every
/// byte belongs to a message, is skipped, or waits for more.
fn control(bytes: &[u8], at_once: usize) {
    let (in_pieces, skipped) = messages(bytes, at_once);
    let (at_a_time, skipped_so) = messages(bytes, bytes.len().max(1));
    assert_eq!((&in_pieces, skipped), (&at_a_time, skipped_so), "it matters how bytes come");
    let mut head_bytes = 0;
    for (session, message) in &in_pieces {
        head_bytes += HEAD_BYTES;
        // Text that is not valid UTF-8 grows when it is encoded again.
        let Some(again) = encode(*session, message) else { continue };
        let (once_more, _) = messages(&again, again.len());
        assert_eq!(once_more, [(*session, message.clone())]);
    }
    assert!(head_bytes as u64 + skipped <= bytes.len() as u64);
    code(in_pieces.into_iter().filter_map(|(_, message)| match message {
        Message::Code(piece) => Some(piece),
        _ => None,
    }));
}

/// Accepted pieces are in the file at their addresses; refused pieces change nothing.
fn code(pieces: impl Iterator<Item = CodePiece>) {
    let mut kept_code = KeptCode::new(X86_64, ByteOrder::Little);
    let accepted_pieces: Vec<CodePiece> =
        pieces.filter(|piece| kept_code.push(piece.address, &piece.bytes).is_ok()).collect();
    let bytes: usize = accepted_pieces.iter().map(|piece| piece.bytes.len()).sum();
    assert_eq!(kept_code.bytes(), bytes as u64);
    if kept_code.is_empty() {
        return;
    }
    let Ok(file) = FileMap::spooled(&*kept_code.to_elf(), Path::new("code")) else { return };
    let Ok(read) = KernelCode::parse(file) else { panic!("the file of pieces is none") };
    assert_eq!(read.elf_machine(), X86_64);
    for CodePiece { address, bytes, .. } in accepted_pieces {
        assert_eq!(read.from(address, bytes.len()), bytes);
    }
}

fn messages(bytes: &[u8], at_once: usize) -> (Vec<(u64, Message)>, u64) {
    let (mut decoder, mut found) = (ControlDecoder::new(), Vec::new());
    for piece in bytes.chunks(at_once) {
        decoder.push(piece);
        found.extend(std::iter::from_fn(|| decoder.next()));
    }
    (found, decoder.skipped())
}

/// Every byte belongs to a header or a page, or is skipped; a header states the number of its
/// pages.
fn pages(bytes: &[u8], at_once: usize) {
    let mut decoder = PageDecoder::new(SESSION);
    let (mut announced, mut remaining) = (0_u64, 0_u64);
    for piece in bytes.chunks(at_once) {
        let Ok(()) = decoder.push(piece, |piece| {
            match piece {
                Piece::Head(head) => {
                    assert!(
                        remaining == 0 && head.session == SESSION && head.bytes <= MAX_PAGES_BYTES
                    );
                    remaining = head.bytes.into();
                    announced += PAGE_HEAD_BYTES as u64;
                }
                Piece::Pages(pages) => {
                    assert!(pages.len() as u64 <= remaining, "more pages than the head says");
                    remaining -= pages.len() as u64;
                    announced += pages.len() as u64;
                }
                Piece::Skipped(count) => {
                    assert!(remaining == 0 && count > 0);
                    announced += count;
                }
            }
            Ok::<(), Infallible>(())
        });
    }
    let pending_bytes = bytes.len() as u64 - announced;
    assert!(pending_bytes < PAGE_HEAD_BYTES as u64, "{pending_bytes} bytes are kept");
}

/// Seed inputs.
pub(crate) fn streams() -> Vec<(String, Vec<u8>)> {
    let hello = GuestHello {
        version: channel::wire::VERSION,
        cpus: 2,
        streams: 2,
        ..GuestHello::default()
    };
    let text = Text { kind: TextKind::Event, last: true, bytes: b"kvm\nname: kvm_exit\n".to_vec() };
    let device = DeviceRange { ports: false, first: 0xfebf_d000, last: 0xfebf_dfff };
    let device = Message::Device(vec![device]);
    let piece = |before, address, bytes: &[u8]| {
        Message::Code(CodePiece { before, elf_machine: X86_64, address, bytes: bytes.to_vec() })
    };
    let code = [piece(0, 0x1000, b"\x90\xc3"), piece(1, 0x1002, b"\xcc"), piece(2, 0, b"")];
    let conversation = [Message::GuestHello(hello), device, Message::Text(text), Message::Alive];
    let used = CpuUse { user_ns: 5, steal_ns: 1, ..CpuUse::default() };
    let task = TaskUse { pid: 7, name: "cc1".into(), threads: 1, run_ns: 3, waited_ns: 1 };
    let view =
        GuestView { span_ns: 6, cpus: vec![(0, used)], tasks: vec![task], ..GuestView::default() };
    let views = [Message::AskView(ViewRequest { tasks: 3 }), Message::View(Box::new(view))];
    let conversation = conversation.into_iter().chain(code).chain(views).collect::<Vec<_>>();
    let mut control = vec![20];
    control.extend(conversation.iter().filter_map(|message| encode(SESSION, message)).flatten());
    let mut page_stream = vec![21];
    for (cpu, session) in [(0, SESSION), (1, SESSION), (0, 3)] {
        page_stream.extend(PageHead { cpu, session, offset: 0, bytes: 64 }.encode());
        page_stream.extend([0; 64]);
    }
    assert!(control.len() < MAX_PAYLOAD_BYTES);
    vec![("control".into(), control), ("pages".into(), page_stream)]
}
