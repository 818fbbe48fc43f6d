//! Agents of this machine, queried like a guest's.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use channel::wire::{CpuUse, Message, TaskUse};
use channel::{Control, Received, Stream};
use os::waits::Wait;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn ask(views: &GuestViews, timeout: Duration) -> Vec<SeenGuest> {
    views.ask();
    views.answers(timeout)
}

fn watch(path: &Path) -> GuestViews {
    GuestViews::begin(&[format!("g=unix:{}", path.display())], 3).unwrap()
}

/// An agent that answers the first connection with `answer`.
fn agent(path: &Path, answer: impl FnMut(&mut Control, u64) -> bool + Send + 'static) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let mut answer = answer;
        let mut control = Control::new(Stream::new(listener.accept().unwrap().0).unwrap());
        while let Ok(Received::Message(session, Message::AskView(request))) =
            control.receive(Wait::at_most(LONG))
        {
            assert_eq!(request.tasks, 3);
            if !answer(&mut control, session) {
                break;
            }
        }
    });
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent");
    (folder, path)
}

#[test]
fn each_question_gets_the_view_since_the_one_before() {
    let (_folder, path) = place();
    let mut span_ns = 0;
    agent(&path, move |control, session| {
        let task = TaskUse { pid: 7, name: "cc1".into(), ..TaskUse::default() };
        let all_cpus = CpuUse { steal_ns: 9, ..CpuUse::default() };
        let view = GuestView { span_ns, all_cpus, tasks: vec![task], ..GuestView::default() };
        span_ns += 5;
        // A view of another session is ignored.
        control.send(session ^ 1, &Message::View(Box::default())).unwrap();
        control.send(session, &Message::View(Box::new(view))).is_ok()
    });
    let views = watch(&path);
    views.wait_until_ready(LONG);
    for span_ns in [5, 10] {
        let [guest] = &ask(&views, LONG)[..] else { panic!() };
        assert_eq!((guest.name.as_str(), guest.process), ("g", None));
        let view = guest.view.as_ref().unwrap();
        assert_eq!((view.span_ns, view.all_cpus.steal_ns), (span_ns, 9));
        assert_eq!(view.tasks[0].name, "cc1");
    }
}

#[test]
fn who_does_not_answer_keeps_nobody_waiting_and_says_why() {
    let (_folder, path) = place();
    let views = watch(&path);
    let start = Instant::now();
    views.wait_until_ready(LONG);
    let [guest] = &ask(&views, Duration::from_millis(50))[..] else { panic!() };
    let why = guest.view.clone().unwrap_err();
    assert!(why.contains("cannot connect") || why.contains("No such file"), "{why}");
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());

    // An agent that answers once, and then is silent.
    let (_folder, path) = place();
    let mut has_answered = false;
    agent(&path, move |control, session| {
        let first = !std::mem::replace(&mut has_answered, true);
        !first || control.send(session, &Message::View(Box::default())).is_ok()
    });
    let views = watch(&path);
    views.wait_until_ready(LONG);
    let start = Instant::now();
    let [guest] = &ask(&views, Duration::from_millis(50))[..] else { panic!() };
    assert!(guest.view.is_err() && start.elapsed() < Duration::from_secs(5), "{guest:?}");
}

#[test]
fn an_answer_that_comes_late_is_shown_next_and_none_is_lost() {
    let (_folder, path) = place();
    let (go, may_answer) = std::sync::mpsc::channel::<()>();
    let mut ask_count = 0;
    agent(&path, move |control, session| {
        ask_count += 1;
        if ask_count > 1 {
            may_answer.recv().unwrap();
        }
        let view = GuestView { span_ns: ask_count, ..GuestView::default() };
        control.send(session, &Message::View(Box::new(view))).is_ok()
    });
    let views = watch(&path);
    views.wait_until_ready(LONG);
    assert!(ask(&views, Duration::from_millis(20))[0].view.is_err());
    go.send(()).unwrap();
    // The late answer arrives, whether or not another question is asked before it is shown.
    let late = ask(&views, LONG);
    assert_eq!(late[0].view.as_ref().unwrap().span_ns, 2);
    go.send(()).unwrap();
    assert_eq!(ask(&views, LONG)[0].view.as_ref().unwrap().span_ns, 3);
}

#[test]
fn an_agent_that_closes_or_refuses_is_quoted() {
    let (_folder, path) = place();
    agent(&path, |_, _| false);
    let views = watch(&path);
    views.wait_until_ready(LONG);
    let [guest] = &ask(&views, Duration::ZERO)[..] else { panic!() };
    assert!(guest.view.clone().unwrap_err().contains("without an answer"), "{guest:?}");

    let (_folder, path) = place();
    agent(&path, |control, session| {
        control.send(session, &Message::Refused("not today".into())).is_ok()
    });
    let views = watch(&path);
    views.wait_until_ready(LONG);
    let [guest] = &ask(&views, Duration::ZERO)[..] else { panic!() };
    assert_eq!(guest.view.clone().unwrap_err(), "not today");
}

#[test]
fn channels_for_one_recorder_alone_are_refused() {
    let refused = GuestViews::begin(&["virtio-serial:/run/x".to_owned()], 3).unwrap_err();
    assert!(refused.to_string().contains("serves only one recorder"), "{refused}");
    assert!(GuestViews::begin(&["no-such-vm".to_owned()], 3).is_err());
    assert!(GuestViews::begin(&[], 3).unwrap().answers(Duration::ZERO).is_empty());
}
