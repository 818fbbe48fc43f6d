//! Individual requests, as columns of the page.

use std::io::{self, Write};

use analyses::path::{ListedRequest, Path, Paths};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::Columns;

/// Id of the element with the requests.
const ID: &str = "hyperscope-requests";

/// Max paths with names: those with the longest time; requests of all others share a group.
const MAX_NAMED: usize = 200;

/// The requests of one path, or of all further paths.
struct Group<'p> {
    /// `None`: several paths.
    path: Option<&'p Path>,
    requests: Vec<&'p ListedRequest>,
}

fn groups(paths: &Paths) -> Vec<Group<'_>> {
    let (named, others) = paths.paths.split_at(paths.paths.len().min(MAX_NAMED));
    let group = |path| Group { path: Some(path), requests: path.listed.iter().collect() };
    let mut groups: Vec<Group<'_>> = named.iter().map(group).collect();
    let mut requests: Vec<&ListedRequest> = others.iter().flat_map(|path| &path.listed).collect();
    if !requests.is_empty() {
        requests.sort_unstable();
        groups.push(Group { path: None, requests });
    }
    groups
}

/// Individual requests; null: there are too many, or none.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct ListedRequests<'p> {
    /// Id of the element that holds them.
    columns_in: &'static str,
    /// Begin of the first request.
    from_ns: i64,
    /// Requests of one path, in the order of their columns.
    groups: Vec<RequestGroup<'p>>,
}

/// A group of requests.
#[derive(Debug, JsonSchema, Serialize)]
struct RequestGroup<'p> {
    /// The VM; null: the request belongs to no VM, or the group has several paths.
    vm: Option<&'p str>,
    /// The path; null: all further paths.
    path: Option<&'p str>,
    /// Number of requests.
    requests: usize,
}

impl<'p> ListedRequests<'p> {
    /// Describes the columns; `None`: there are too many requests, or none.
    pub(super) fn new(paths: &'p Paths, origin_ns: u64) -> Option<Self> {
        if !paths.are_listed {
            return None;
        }
        let group = |group: &Group<'p>| RequestGroup {
            vm: group.path.and_then(|path| path.vm.as_deref()),
            path: group.path.map(|path| path.name.as_str()),
            requests: group.requests.len(),
        };
        let groups = groups(paths);
        let from_ns = i128::from(first_ns(&groups)) - i128::from(origin_ns);
        Some(Self {
            columns_in: ID,
            from_ns: i64::try_from(from_ns).unwrap_or(0),
            groups: groups.iter().map(group).collect(),
        })
    }
}

/// Begin of the first request.
fn first_ns(groups: &[Group<'_>]) -> u64 {
    let firsts = groups.iter().filter_map(|group| group.requests.first());
    firsts.map(|first| first.begin_ns).min().unwrap_or(0)
}

/// The requests of all groups, column by column.
pub(super) fn write(paths: &Paths, out: &mut dyn Write) -> io::Result<()> {
    if !paths.are_listed {
        return Ok(());
    }
    let groups = groups(paths);
    let first_ns = first_ns(&groups);
    let mut columns = Columns::begin(ID, out)?;
    for group in &groups {
        let mut before_ns = first_ns;
        for request in &group.requests {
            columns.number(request.begin_ns.saturating_sub(before_ns))?;
            before_ns = request.begin_ns;
        }
    }
    for request in groups.iter().flat_map(|group| &group.requests) {
        columns.number(request.length_ns)?;
    }
    columns.end()
}
