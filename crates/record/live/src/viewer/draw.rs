//! Draws the screen on a terminal of at least 80 columns.

use std::borrow::Cow;

use crate::Interval;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use tables::units::{count, plural, share, time};

use crate::viewer::guests::{heading, lines as guest_lines, task_rows};
use crate::viewer::ran_instead::runners;
use crate::viewer::screen::Screen;
use crate::viewer::tree::{Line, Sort};

/// Bars of one to eight eighths of a character's height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of numbers: headings, widths, and sort keys.
const COLUMNS: [(&str, u16, Option<Sort>); 7] = [
    ("exits/s", 9, Some(Sort::Exits)),
    ("cost", 7, Some(Sort::Cost)),
    ("guest", 7, None),
    ("run queue", 9, Some(Sort::RunQueue)),
    ("p50", 8, None),
    ("p99", 8, Some(Sort::P99)),
    ("wait p99", 8, None),
];
/// Min width of a name.
const MIN_NAME: u16 = 14;
/// Min width of a sparkline; without room for it, there is none.
const MIN_SPARKLINE: u16 = 8;
/// Max lines of a notice.
const MAX_NOTICE_LINES: usize = 4;
/// Max threads to name that ran while the selected vCPUs waited.
const MAX_RUNNERS: usize = 3;
/// Max width of a sparkline.
const MAX_SPARKLINE: u16 = 60;

const HELP: &str = "\
Shares are percentages of one CPU in the last interval. A VM's share is the sum of its vCPUs. If a
guest runs guests, level 1 is the guest and level 2 its guests; they add up to the line above.

  cost       CPU time spent on handling exits: before exit, kernel, user space
  guest      the guest ran
  run queue  a vCPU was runnable without a CPU; for a reason: within its exits
  p50, p99   times of exits except waiting ones, with an error of at most 19%
  wait p99   99th percentile of waits for a CPU
  sparkline  cost in earlier intervals, the newest at the right

  up, down, j, k      choose a line            c e w p n  sort by cost, exits, run queue,
  right, left, enter  show what is below it               p99, name
  /                   filter VMs and reasons   space      pause
  ?                   this page                q          end
  r                   record this VM for 10 s and make its report; r again stops early
  g                   tasks of its guest, if --guest names it; g again: back";

pub fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let notice_text = notice_lines(screen, frame.area().width);
    let lines = screen.lines();
    let waits = waits_line(screen, &lines);
    let inside = inside_lines(screen);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(u16::from(waits.is_some())),
        Constraint::Length(u16::try_from(inside.len()).unwrap_or(0)),
        Constraint::Length(u16::try_from(notice_text.len()).unwrap_or(0)),
        Constraint::Length(1),
    ]);
    let [head, cost, body, waited, guest, notice, keys] = areas.areas(frame.area());
    match screen.interval() {
        Some(interval) => {
            frame.render_widget(Paragraph::new(head_line(screen, interval)), head);
            frame.render_widget(Paragraph::new(cost_line(interval)), cost);
        }
        None => frame.render_widget(Paragraph::new("hyperscope top: the first interval"), head),
    }
    if screen.shows_help() {
        frame.render_widget(Paragraph::new(HELP), body);
    } else if screen.shows_tasks() {
        task_table(screen, frame, body);
    } else {
        body_table(screen, &lines, frame, body);
    }
    frame.render_widget(Paragraph::new(waits.unwrap_or_default()), waited);
    frame.render_widget(Paragraph::new(inside), guest);
    frame.render_widget(Paragraph::new(notice_text), notice);
    frame.render_widget(Paragraph::new(keys_line(screen)), keys);
}

/// Threads that ran while the selected VM or vCPU waited for a CPU.
fn waits_line<'t>(screen: &Screen, lines: &[Line]) -> Option<Text<'t>> {
    let interval = screen.interval()?;
    let place = &lines.get(screen.selected_at(lines)?)?.place;
    let is_of = |vcpu: &&crate::Vcpu| {
        vcpu.vm == place.vm && (place.vcpu.is_none() || vcpu.vcpu == place.vcpu)
    };
    let (runners, waited_ns) = runners(interval.vcpus.iter().filter(is_of));
    if waited_ns == 0 {
        return None;
    }
    let of_cpu = |ns| share(ns, interval.interval_ns());
    let named = runners.iter().take(MAX_RUNNERS);
    let named: Vec<String> = named
        .map(|runner| format!("{} {}", printable::line(&runner.who), of_cpu(runner.time_ns)))
        .collect();
    let vcpu = place.vcpu.map_or(String::new(), |vcpu| format!(" vCPU {vcpu}"));
    let vm = printable::line(&place.vm);
    Some(Text::raw(format!(
        "{vm}{vcpu} waited {}; ran instead: {}",
        of_cpu(waited_ns),
        named.join(", ")
    )))
}

/// The own view of the selected VM's guest.
fn inside_lines<'t>(screen: &Screen) -> Vec<Text<'t>> {
    let lines = screen.guest_under_cursor().map(guest_lines).unwrap_or_default();
    lines.into_iter().map(Text::raw).collect()
}

/// The tasks of the selected VM's guest.
fn task_table(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let none = |why: String| Paragraph::new(why);
    let Some(guest) = screen.guest_under_cursor() else {
        let why = "no view of this VM's guest: start top with --guest NAME (g: back)";
        return frame.render_widget(none(why.to_owned()), area);
    };
    let view = match &guest.view {
        Ok(view) => view,
        Err(why) => return frame.render_widget(none(printable::line(why).into_owned()), area),
    };
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let text = format!("{}: {}", printable::line(&guest.name), heading(view));
    frame.render_widget(Paragraph::new(text), above);
    let rows = task_rows(view, usize::MAX).map(|[task, pid, ran, waited]| {
        let task = printable::line(&task).into_owned();
        Row::new([task, format!("{pid:>10}"), format!("{ran:>9}"), format!("{waited:>9}")])
    });
    let widths = [
        Constraint::Min(MIN_NAME),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    let titles = ["task", "       pid", "      ran", "   waited"];
    let table = Table::new(rows, widths)
        .column_spacing(1)
        .header(Row::new(titles).style(Style::new().add_modifier(Modifier::UNDERLINED)));
    frame.render_widget(table, below);
}

/// The notice, wrapped so that paths are complete.
fn notice_lines<'t>(screen: &Screen, width: u16) -> Vec<Text<'t>> {
    let Some(notice) = screen.notice() else { return Vec::new() };
    let chars: Vec<char> = printable::line(notice).chars().collect();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let line = |part: &[char]| Text::styled(part.iter().collect::<String>(), bold);
    chars.chunks(usize::from(width.max(1))).take(MAX_NOTICE_LINES).map(line).collect()
}

fn head_line<'t>(screen: &Screen, interval: &Interval) -> Text<'t> {
    let mut vms: Vec<(&str, u32)> =
        interval.vcpus.iter().map(|vcpu| (vcpu.vm.as_str(), vcpu.process)).collect();
    vms.dedup();
    let text = format!(
        "hyperscope top: {}, {}, {}/s in the last {}",
        plural(vms.len() as u64, "VM"),
        plural(interval.vcpus.len() as u64, "vCPU"),
        plural(per_second(interval.cost.exits, interval), "exit"),
        time(interval.interval_ns(), true),
    );
    let paused = if screen.is_paused() { "  paused" } else { "" };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Text::from(vec![Span::styled(text, bold), Span::raw(paused)])
}

/// The cost of measuring, and the losses.
fn cost_line<'t>(interval: &Interval) -> Text<'t> {
    let cost = interval.cost;
    let of_cpu = |ns| share(ns, interval.interval_ns());
    let mut text = format!("own cost: {} of a CPU for this program", of_cpu(cost.process_ns));
    match (cost.programs_ns, cost.per_exit_ns()) {
        (Some(ns), Some(each)) => {
            text += &format!(", in the kernel {}, {} an exit", of_cpu(ns), time(each, true));
        }
        (Some(ns), None) => text += &format!(", in the kernel {}", of_cpu(ns)),
        _ => text += ", in the kernel unknown",
    }
    if interval.left_out.without_state > 0 {
        let exits = plural(interval.left_out.without_state, "exit");
        text += &format!("; {exits} of vCPUs beyond its capacity");
    }
    Text::raw(text)
}

fn keys_line<'t>(screen: &Screen) -> Text<'t> {
    let (filter, is_typing) = screen.filter();
    if is_typing {
        return Text::raw(format!("filter: {}_", printable::line(filter)));
    }
    let mut text = format!("sorted by {} (c e w p n)", screen.sort().name());
    if !filter.is_empty() {
        text += &format!(", only \"{}\"", printable::line(filter));
    }
    let tasks = if screen.has_guests() { "  g tasks" } else { "" };
    text += &format!("  / filter  r record{tasks}  space pause  ? help  q end");
    Text::raw(text)
}

fn body_table(screen: &Screen, lines: &[Line], frame: &mut Frame<'_>, area: Rect) {
    let Some(interval) = screen.interval() else { return };
    if lines.is_empty() {
        let nothing = "no vCPU entered or left its guest";
        frame.render_widget(Paragraph::new(nothing), area);
        return;
    }
    let numbers: u16 = COLUMNS.iter().map(|(_, width, _)| width + 1).sum();
    let rest = area.width.saturating_sub(numbers);
    let spark = rest.saturating_sub(MIN_NAME + 1).min(rest / 2).min(MAX_SPARKLINE);
    let spark = if spark < MIN_SPARKLINE { 0 } else { spark };
    let mut widths = vec![Constraint::Min(MIN_NAME)];
    widths.extend(COLUMNS.iter().map(|(_, width, _)| Constraint::Length(*width)));
    let mut titles = vec![Cell::from("VM, vCPU, reason")];
    titles.extend(COLUMNS.iter().map(|column| title(column, screen.sort())));
    if spark > 0 {
        widths.push(Constraint::Length(spark));
        titles.push(Cell::from("cost before"));
    }
    let rows = lines.iter().map(|line| row(screen, interval, line, spark));
    let table = Table::new(rows, widths)
        .column_spacing(1)
        .header(Row::new(titles).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(screen.selected_at(lines));
    frame.render_stateful_widget(table, area, &mut state);
}

fn title<'c>((title, width, sort): &(&str, u16, Option<Sort>), by: Sort) -> Cell<'c> {
    let style = match sort {
        Some(sort) if *sort == by => Style::new().add_modifier(Modifier::BOLD),
        _ => Style::new(),
    };
    Cell::from(format!("{title:>0$}", usize::from(*width))).style(style)
}

fn row<'r>(screen: &Screen, interval: &Interval, line: &Line, spark: u16) -> Row<'r> {
    let depth = line.depth();
    let mark = if !line.can_open() {
        "  "
    } else if screen.is_open(&line.place) {
        "- "
    } else {
        "+ "
    };
    let name: Cow<'_, str> = line.name().into();
    let mut cells =
        vec![Cell::from(format!("{}{mark}{}", "  ".repeat(depth), printable::line(&name)))];
    let span_ns = interval.interval_ns();
    let quantile = |times: &crate::Histogram, quantile| {
        times.quantile_ns(quantile).map_or("-".to_owned(), |ns| time(ns, true))
    };
    let of_cpu = |ns: u64| share(ns, span_ns);
    let is_reason = line.place.reason.is_some();
    // The level of a vCPU's run-queue wait is unknown.
    let is_level = line.place.level.is_some();
    let none = || "-".to_owned();
    let texts = [
        count(per_second(line.exits, interval)),
        if line.waiting { none() } else { of_cpu(line.cost_ns) },
        if is_reason { none() } else { of_cpu(line.guest_ns) },
        if is_level { none() } else { of_cpu(line.run_queue_ns) },
        quantile(&line.times, 0.5),
        quantile(&line.times, 0.99),
        if is_reason || is_level { none() } else { quantile(&line.waits, 0.99) },
    ];
    for (text, (_, width, _)) in texts.into_iter().zip(COLUMNS) {
        cells.push(Cell::from(format!("{text:>0$}", usize::from(width))));
    }
    if spark > 0 {
        cells.push(Cell::from(sparkline(screen.history(&line.place), usize::from(spark))));
    }
    Row::new(cells)
}

fn per_second(number: u64, interval: &Interval) -> u64 {
    let rate = u128::from(number) * 1_000_000_000;
    let rate = rate.checked_div(u128::from(interval.interval_ns())).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The newest value is at the right, the highest is a full block.
fn sparkline(history: impl DoubleEndedIterator<Item = u64>, width: usize) -> String {
    let mut newest: Vec<u64> = history.rev().take(width).collect();
    newest.reverse();
    let max = newest.iter().copied().max().unwrap_or(0).max(1);
    let bar = |&value: &u64| {
        let eighth = (u128::from(value) * (BARS.len() as u128 - 1)).div_ceil(u128::from(max));
        BARS[usize::try_from(eighth).unwrap_or(0).min(BARS.len() - 1)]
    };
    newest.iter().map(bar).collect()
}

#[cfg(test)]
mod tests;
