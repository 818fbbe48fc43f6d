//! Paths within a lake.

use crate::column::Table;
use crate::tables::{BUCKETS, REJECTED, SESSIONS};

/// The folder of this layout version.
pub(super) const ROOT: &str = "v1";

/// The folder of sessions' rows.
pub(super) fn sessions() -> String {
    format!("{ROOT}/{}", SESSIONS.name)
}

/// The file that makes a session's rows valid.
pub(super) fn session(date: &str, session: &str) -> String {
    format!("{}/date={date}/{session}.parquet", sessions())
}

/// The file with one session's rows.
pub(super) fn hot(table: &Table, date: &str, session: &str, ingest: &str) -> String {
    format!("{ROOT}/{}/hot/date={date}/{session}-{ingest}.parquet", table.name)
}

/// The file with several sessions' rows.
pub(super) fn cold(table: &Table, date: &str, part: &str) -> String {
    format!("{ROOT}/{}/cold/date={date}/part-{part}.parquet", table.name)
}

/// The buckets of histograms.
pub(super) fn buckets() -> String {
    format!("{ROOT}/{0}/{0}.parquet", BUCKETS.name)
}

/// The folder of the key check of pseudonyms.
pub(super) fn pseudonyms() -> String {
    format!("{ROOT}/pseudonyms")
}

/// The file that identifies the key.
pub(super) fn key_check(check: &str) -> String {
    format!("{}/{check}.txt", pseudonyms())
}

/// The folder of records of rejected recordings.
pub(super) fn rejected() -> String {
    format!("{ROOT}/{}", REJECTED.name)
}

/// The day of the sessions in a file, from its name; `None` if the name has no day.
#[must_use]
pub fn date_in(name: &str) -> Option<&str> {
    Place::parse(name).map(|place| place.date)
}

/// A file name of a lake, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place<'n> {
    pub(super) table: &'n str,
    pub(super) date: &'n str,
    pub(super) kind: PlaceOf<'n>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaceOf<'n> {
    Session(&'n str),
    Hot { session: &'n str, ingest: &'n str },
    Cold(&'n str),
}

impl<'n> Place<'n> {
    pub(super) fn parse(name: &'n str) -> Option<Self> {
        let rest = name.strip_prefix(ROOT)?.strip_prefix('/')?.strip_suffix(".parquet")?;
        let parts: Vec<&str> = rest.split('/').collect();
        let (table, date, kind) = match *parts {
            [table, date, session] => (table, date, PlaceOf::Session(session)),
            [table, "hot", date, file] => {
                let (session, ingest) = file.split_once('-')?;
                (table, date, PlaceOf::Hot { session, ingest })
            }
            [table, "cold", date, file] => {
                (table, date, PlaceOf::Cold(file.strip_prefix("part-")?))
            }
            _ => return None,
        };
        Some(Self { table, date: date.strip_prefix("date=")?, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::EXITS;

    #[test]
    fn names_lead_back_to_what_they_are_of() {
        let hot = hot(&EXITS, "2026-11-22", "ab", "cd");
        let expected = PlaceOf::Hot { session: "ab", ingest: "cd" };
        assert_eq!(
            Place::parse(&hot),
            Some(Place { table: "exits", date: "2026-11-22", kind: expected })
        );
        let cold = cold(&EXITS, "2026-11-22", "ef");
        assert_eq!(Place::parse(&cold).unwrap().kind, PlaceOf::Cold("ef"));
        assert_eq!(date_in(&cold), Some("2026-11-22"));
        let session = session("2026-11-22", "ab");
        assert_eq!(Place::parse(&session).unwrap().kind, PlaceOf::Session("ab"));
        for other in
            [buckets().as_str(), "v1/exits/warm/date=1/a.parquet", "v2/a", "v1/exits/hot/x"]
        {
            assert_eq!((Place::parse(other), date_in(other)), (None, None), "{other}");
        }
    }
}
