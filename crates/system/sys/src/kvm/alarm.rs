//! Sends a signal to this thread after a time, then every second, to end a call that blocks
//! forever.

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Active until it is dropped.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: libc::timer_t,
    over: Instant,
}

extern "C" fn nothing(_: libc::c_int) {}

impl Alarm {
    /// Starts the timer.
    pub(super) fn after(time: Duration) -> io::Result<Self> {
        let signal = libc::SIGRTMIN() + 7;
        // SAFETY: zeroes are a valid value of these plain structures.
        let (mut action, mut event): (libc::sigaction, libc::sigevent) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler does nothing, so it may run at any moment; these programs do not
        // use the signal otherwise.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: gettid has no conditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = MaybeUninit::uninit();
        let clock = libc::CLOCK_MONOTONIC;
        // SAFETY: `event` is complete, and the kernel writes the timer's number where there is room.
        if unsafe { libc::timer_create(clock, &raw mut event, timer.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so the number is written.
        let alarm = Self { timer: unsafe { timer.assume_init() }, over: Instant::now() + time };
        alarm.set(time).map(|()| alarm)
    }

    fn set(&self, time: Duration) -> io::Result<()> {
        let first = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i32::MAX.into()),
            // Not 0, which would disarm the timer.
            tv_nsec: time.subsec_nanos().max(1).into(),
        };
        // Repeats, because a signal right before the blocking call does not end it.
        let again = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        let times = libc::itimerspec { it_interval: again, it_value: first };
        // SAFETY: the timer is this alarm's own, and the times are complete.
        match unsafe { libc::timer_settime(self.timer, 0, &raw const times, std::ptr::null_mut()) }
        {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether the time has passed.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.over
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: this alarm owns the timer, which is not used after this.
        unsafe { libc::timer_delete(self.timer) };
    }
}
