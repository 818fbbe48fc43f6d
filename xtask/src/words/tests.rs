//! What is refused, what may stay, and that numbers only fall.

use super::*;

fn found(path: &str, text: &str) -> Vec<(usize, String)> {
    let path = Path::new(path);
    let all = findings(path, language(path).unwrap_or(Language::Text), text);
    all.into_iter().map(|finding| (finding.line, finding.found)).collect()
}

#[test]
fn a_refused_word_is_found_in_identifiers_strings_comments_and_documents() {
    for text in
        ["struct ToldSink;", "let is_told = 1;", "f(\"it told\");", "// As told.", "/* told */"]
    {
        assert_eq!(found("crates/a/src/b.rs", text), [(1, "told".to_owned())], "{text}");
    }
    assert_eq!(found("docs/a.md", "One.\nIt begins anew.\n"), [(2, "anew".to_owned())]);
}

#[test]
fn a_phrase_is_found_across_lines_of_a_comment() {
    let text = "/// Bytes of a ring: so\n/// many for each.\n";
    assert_eq!(found("crates/a/src/b.rs", text), [(1, "so many".to_owned())]);
}

#[test]
fn words_inside_longer_words_may_stay() {
    for text in ["kvm_avic_doorbell", "besides", "return", "ongoing", "stolen"] {
        assert_eq!(found("crates/a/src/b.rs", text), [], "{text}");
    }
}

#[test]
fn to_tell_apart_may_stay() {
    assert_eq!(found("docs/a.md", "It tells waiting from running apart."), []);
    assert_eq!(found("docs/a.md", "It tells waiting from running.").len(), 1);
}

#[test]
fn some_words_are_refused_as_identifiers_only() {
    let path = "crates/a/src/b.rs";
    assert_eq!(
        found(path, "let turn = 1; // in turn\nlet a = \"a turn\";"),
        [(1, "turn".to_owned())]
    );
    assert_eq!(found(path, "let a = r#\"a \" turn\"#; let b = '\"'; let going = 2;").len(), 1);
    assert_eq!(found(path, "fn a<'a>(b: &'a str) { door('\\'') }"), [(1, "door".to_owned())]);
    assert_eq!(found("docs/a.md", "At the moment it is going on in turn."), []);
}

#[test]
fn frozen_names_may_stay() {
    for (name, reason) in FROZEN {
        assert_eq!(found("crates/a/src/b.rs", name), [], "{reason}");
    }
    assert_eq!(found("crates/a/src/b.rs", "senseless").len(), 1);
}

#[test]
fn one_of_something_is_not_counted_in_the_plural() {
    for text in ["1 exits", "of 1 vCPUs: 3", "(1 events)"] {
        assert_eq!(found("crates/a/tests/golden/b.txt", text).len(), 1, "{text}");
    }
    for text in ["level 1 exits", "21 exits", "1 exit", "0.1 exits", "1,001 events"] {
        assert_eq!(found("crates/a/tests/golden/b.txt", text), [], "{text}");
    }
}

#[test]
fn microseconds_have_one_unit() {
    assert_eq!(found("web/src/a.ts", "const unit = '\u{b5}s';").len(), 1);
    assert_eq!(found("web/src/a.ts", "const unit = 'us';"), []);
}

#[test]
fn numbers_may_only_fall() {
    let limits = parse("# Head\ncrates/a 2\ndocs 1\n");
    let lines = |count: usize| vec!["x".to_owned(); count];
    let found = BTreeMap::from([("crates/a".to_owned(), lines(1)), ("docs".to_owned(), lines(1))]);
    assert_eq!(risen(&limits, &found), Vec::<String>::new());
    assert_eq!(lowered(&limits, &found), format!("{HEAD}crates/a 1\ndocs 1\n"));
    let found = BTreeMap::from([("crates/a".to_owned(), lines(3)), ("xtask".to_owned(), lines(1))]);
    assert_eq!(risen(&limits, &found).len(), 2);
    assert_eq!(lowered(&limits, &found), format!("{HEAD}crates/a 2\n"));
}

#[test]
fn what_is_exempt_is_not_read() {
    for path in ["web/dist/report.html", "xtask/src/words/rules.rs", "fixtures/a/session.json"] {
        assert_eq!(language(Path::new(path)), None, "{path}");
    }
    for path in ["fixtures/README.md", "Makefile", "kmod/build", "docs/formats/a.schema.json"] {
        assert_eq!(language(Path::new(path)), Some(Language::Text), "{path}");
    }
}

#[test]
fn every_field_of_json_is_described() {
    let mut undescribed = Vec::new();
    for entry in fs::read_dir(repository::root().join("docs/formats")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".schema.json") {
            let schema = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            fields_without_description(&schema, &path.display().to_string(), &mut undescribed);
        }
    }
    assert_eq!(undescribed, Vec::<String>::new());
}

fn fields_without_description(schema: &serde_json::Value, at: &str, found: &mut Vec<String>) {
    let properties = schema.get("properties").and_then(|all| all.as_object());
    for (name, field) in properties.into_iter().flatten() {
        let explains = |key| field.get(key).is_some();
        if !["description", "$ref", "const"].into_iter().any(explains) {
            found.push(format!("{at}: {name}"));
        }
    }
    let inner: Vec<&serde_json::Value> = match schema {
        serde_json::Value::Object(all) => all.values().collect(),
        serde_json::Value::Array(all) => all.iter().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().for_each(|value| fields_without_description(value, at, found));
}
