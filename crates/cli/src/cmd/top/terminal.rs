//! `hyperscope top` on a terminal: a screen that is redrawn after each interval and each key.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use live::viewer::{Key, Screen, draw};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::Watched;
use super::recording::Recordings;
use command::notice::say;

/// Interval of checks for signals while no key arrives.
const LOOK: Duration = Duration::from_millis(100);

/// Shows intervals until the user or a signal ends it. Then restores the terminal, also after a panic.
pub(super) fn show(
    watched: &mut Watched,
    interval: Duration,
    is_over: &Receiver<()>,
) -> anyhow::Result<()> {
    let mut recordings = Recordings::new()?;
    let mut terminal = ratatui::try_init()?;
    let shown = follow(watched, interval, is_over, &mut recordings, &mut terminal);
    let restored = ratatui::try_restore();
    recordings.end().iter().for_each(|result| say(result));
    shown.and(restored.map_err(Into::into))
}

fn follow(
    watched: &mut Watched,
    interval: Duration,
    is_over: &Receiver<()>,
    recordings: &mut Recordings,
    terminal: &mut DefaultTerminal,
) -> anyhow::Result<()> {
    let mut screen = Screen::default();
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| draw(&screen, frame))?;
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                let (shown, guests) = watched.interval()?;
                screen.take(shown, guests);
                next = (next + interval).max(Instant::now());
                break;
            }
            let is_changed = event::poll(rest.min(LOOK))? && take(&event::read()?, &mut screen);
            if screen.take_record_key() {
                recordings.press(screen.vm_under_cursor(), screen.asked_under_cursor());
            }
            recordings.go_on();
            if screen.set_notice(recordings.notice()) || is_changed {
                break;
            }
            if is_over.try_recv().is_ok() {
                return Ok(());
            }
        }
        if screen.has_ended() {
            return Ok(());
        }
    }
}

/// Whether the event changes the screen.
fn take(event: &Event, screen: &mut Screen) -> bool {
    let Event::Key(pressed) = event else { return matches!(event, Event::Resize(..)) };
    if pressed.kind == KeyEventKind::Release {
        return false;
    }
    let is_control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    let key = match pressed.code {
        KeyCode::Char('c') if is_control => return end(screen),
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Right => Key::Right,
        KeyCode::Left => Key::Left,
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        _ => return false,
    };
    screen.key(key);
    true
}

/// Ends the screen, whatever is being typed.
fn end(screen: &mut Screen) -> bool {
    screen.end();
    true
}
