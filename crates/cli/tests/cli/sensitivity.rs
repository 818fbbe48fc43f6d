//! `sensitivity` from the command line, without a VM.

use crate::tool::hyperscope;

#[test]
fn wrong_arguments_are_said_before_anything_is_touched() {
    let wrong: [(&[&str], &str); 6] = [
        (&["--reason", "hlt"], "--vm"),
        (&["--vm", "web"], "--reason"),
        (&["--vm", "web", "--reason", "hlt", "--delays", "1ms"], "500ns or 2us"),
        (&["--vm", "web", "--reason", "hlt", "--delays", "101us"], "the longest delay is 100"),
        (&["--vm", "web", "--reason", "hlt", "--delays", "0"], "longer than 0"),
        (&["--vm", "web", "--reason", "hlt", "--for", "0s"], "longer than 0"),
    ];
    for (arguments, message) in wrong {
        let run = hyperscope(&[&["sensitivity"][..], arguments].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(message), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn a_vm_that_does_not_run_is_named() {
    let run = hyperscope(&["sensitivity", "--vm", "nobody's", "--reason", "hlt", "--for", "1s"]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("no VM has the name nobody's"), "{}", run.err);
}
