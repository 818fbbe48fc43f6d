//! Words of a file with their lines, and which of them are code.

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// `//` and `/* */`, strings, identifiers; raw strings and lifetimes are Rust's.
    Code,
    /// No code: documents, scripts, expected outputs.
    Text,
}

/// A word of a file, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) text: String,
    /// Part of an identifier in code: neither in a comment nor in a string.
    pub(super) in_code: bool,
}

/// All words in their order. Identifiers are split at `_` and where a capital follows a small letter.
pub(super) fn words(text: &str, language: Language) -> Vec<Word> {
    let code = match language {
        Language::Code => code_only(text),
        Language::Text => String::new(),
    };
    let mut found = Vec::new();
    let mut code_lines = code.lines();
    for (at, line) in text.lines().enumerate() {
        let code: Vec<char> = code_lines.next().unwrap_or_default().chars().collect();
        words_of_line(line, at + 1, &code, &mut found);
    }
    found
}

fn words_of_line(line: &str, number: usize, code: &[char], found: &mut Vec<Word>) {
    let mut word = String::new();
    let mut began = 0;
    let mut after_small = false;
    for (at, letter) in line.chars().chain(Some(' ')).enumerate() {
        let parts = !letter.is_ascii_alphanumeric() || (after_small && letter.is_ascii_uppercase());
        if parts && !word.is_empty() {
            let in_code = code.get(began).is_some_and(|letter| *letter != ' ');
            found.push(Word { line: number, text: std::mem::take(&mut word), in_code });
        }
        if letter.is_ascii_alphanumeric() {
            if word.is_empty() {
                began = at;
            }
            word.push(letter.to_ascii_lowercase());
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
    }
}

/// What a scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    LineComment,
    BlockComment,
    /// A string that ends at this character.
    Quotes(char),
    /// A raw string that ends at a quote and this number of `#`.
    Raw(usize),
}

/// The text with comments and strings blanked out, each line as long as before.
fn code_only(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut blanked = String::with_capacity(text.len());
    let (mut within, mut at) = (Within::Code, 0);
    while let Some(&letter) = letters.get(at) {
        let next = letters.get(at + 1).copied().unwrap_or_default();
        let (then, length) = match within {
            Within::Code => opened(&letters, at),
            Within::LineComment if letter == '\n' => (Within::Code, 1),
            Within::BlockComment if letter == '*' && next == '/' => (Within::Code, 2),
            Within::Quotes(_) if letter == '\\' => (within, 2),
            Within::Quotes(end) if letter == end => (Within::Code, 1),
            Within::Raw(marks) if letter == '"' && hashes(&letters, at + 1) >= marks => {
                (Within::Code, 1 + marks)
            }
            other => (other, 1),
        };
        let keeps = within == Within::Code && then == Within::Code && length == 1;
        for letter in letters.iter().skip(at).take(length) {
            blanked.push(if keeps || *letter == '\n' { *letter } else { ' ' });
        }
        (within, at) = (then, at + length);
    }
    blanked
}

/// What begins at a place in code, and how long its opening is.
fn opened(letters: &[char], at: usize) -> (Within, usize) {
    let ahead = |by: usize| letters.get(at + by).copied().unwrap_or_default();
    match (ahead(0), ahead(1)) {
        ('/', '/') => (Within::LineComment, 2),
        ('/', '*') => (Within::BlockComment, 2),
        ('"', _) => (Within::Quotes('"'), 1),
        ('`', _) => (Within::Quotes('`'), 1),
        ('r', '"') => (Within::Raw(0), 2),
        ('r', '#') if letters.get(at + 1 + hashes(letters, at + 1)) == Some(&'"') => {
            let marks = hashes(letters, at + 1);
            (Within::Raw(marks), 2 + marks)
        }
        // A character; a lifetime has no second quote there.
        ('\'', '\\') => (Within::Quotes('\''), 1),
        ('\'', _) if ahead(2) == '\'' => (Within::Code, 3),
        _ => (Within::Code, 1),
    }
}

fn hashes(letters: &[char], at: usize) -> usize {
    letters.iter().skip(at).take_while(|letter| **letter == '#').count()
}
