//! CTF 2: the same layout as in CTF 1.8 gives the same events.

use ctf::{CtfError, Layout, Packets};

use crate::pretty;

const METADATA: &str = r#"
{"type":"preamble","version":2}
{"type":"field-class-alias","name":"u8","field-class":{"type":"fixed-length-unsigned-integer","length":8,"alignment":8,"byte-order":"little-endian"}}
{"type":"trace-class","environment":{"tracer_name":"made","n":3}}
{"type":"clock-class","id":"c","frequency":1000000000,"offset-from-origin":{"seconds":7,"cycles":5}}
{"type":"data-stream-class","default-clock-class-id":"c","event-record-header-field-class":{"type":"structure","member-classes":[
 {"name":"when","field-class":{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian","roles":["default-clock-timestamp"]}}]}}
{"type":"event-record-class","name":"e","payload-field-class":{"type":"structure","member-classes":[
 {"name":"n","field-class":"u8"},
 {"name":"text","field-class":{"type":"dynamic-length-string","length-field-location":{"origin":"event-record-payload","path":["n"]}}},
 {"name":"tag","field-class":{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"big-endian","mappings":{"one":[[1,1]],"more":[[2,9]]}}},
 {"name":"either","field-class":{"type":"variant","selector-field-location":{"origin":"event-record-payload","path":["tag"]},"options":[
   {"name":"a","selector-field-ranges":[[1,1]],"field-class":"u8"},
   {"name":"b","selector-field-ranges":[[2,9]],"field-class":{"type":"null-terminated-string"}}]}},
 {"name":"may","field-class":{"type":"optional","selector-field-location":{"origin":"event-record-payload","path":["tag"]},"selector-field-ranges":[[2,2]],"field-class":"u8"}},
 {"name":"wide","field-class":{"type":"variable-length-signed-integer"}},
 {"name":"pair","field-class":{"type":"static-length-array","length":2,"element-field-class":"u8"}}]}}
"#;

/// Each fragment starts on a line that starts with a brace.
fn metadata() -> Vec<u8> {
    METADATA.replace("\n{", "\n\u{1e}{").trim_start().as_bytes().to_vec()
}

#[test]
fn fields_of_each_class_are_read() {
    let layout = Layout::parse(&metadata()).unwrap();
    assert_eq!((layout.version, layout.env("tracer_name")), ("2", Some("made")));
    let ns = layout.clocks.first().map(|clock| clock.offset_ns() + clock.cycles_ns(1));
    assert_eq!(ns, Some(7_000_000_006));
    let first = [10, 3, b'a', b'b', b'c', 1, 42, 0x7f, 8, 9];
    let second = [11, 0, 2, b'x', 0, 77, 0x80, 0x7f, 8, 9];
    let file = [&first[..], &second].concat();
    assert_eq!(
        pretty::lines(&layout, &file),
        [
            "00000000000000000010 e { n = 3, text = \"abc\", tag = ( \"one\" : container = 1 ), \
             either = 42, wide = -1, pair = [ [0] = 8, [1] = 9 ] }",
            "00000000000000000011 e { n = 0, text = \"\", tag = ( \"more\" : container = 2 ), \
             either = \"x\", may = 77, wide = -128, pair = [ [0] = 8, [1] = 9 ] }",
        ]
    );
    // Without a size, a packet extends to the end of the file.
    assert_eq!(Packets::new(&layout, &file).count(), 1);
}

#[test]
fn what_can_not_be_is_refused() {
    let with = |from: &str, to: &str| {
        let text = String::from_utf8(metadata()).unwrap();
        assert!(text.contains(from), "{from}");
        Layout::parse(text.replace(from, to).as_bytes())
    };
    assert!(matches!(
        with(r#""version":2"#, r#""version":3"#),
        Err(CtfError::Fragment { fragment: 1, .. })
    ));
    assert!(matches!(
        with(r#""path":["tag"]"#, r#""path":["gone"]"#),
        Err(CtfError::Reference { .. })
    ));
    assert!(matches!(
        with(r#""field-class":"u8""#, r#""field-class":"u9""#),
        Err(CtfError::Fragment { .. })
    ));
    assert!(matches!(with("preamble", "\"preamble"), Err(CtfError::Fragment { .. })));
    assert!(matches!(
        with(r#""default-clock-class-id":"c""#, r#""default-clock-class-id":"d""#),
        Err(CtfError::Reference { .. })
    ));
}
