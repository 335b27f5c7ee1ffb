//! A program in a pseudo terminal, and what its user sees.
//!
//! Each test file uses the part that it needs, hence the allowance for unused parts.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex};

use orrery_testkit::wait_for;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    /// Keeps the terminal open.
    _master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    pub fn run(program: &Path, args: &[&str], columns: u16, lines: u16) -> Terminal {
        let mut command = CommandBuilder::new(program);
        command.args(args);
        Terminal::run_command(command, columns, lines)
    }

    pub fn run_command(mut command: CommandBuilder, columns: u16, lines: u16) -> Terminal {
        let size = PtySize { rows: lines, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).expect("the program runs");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(not_zero(lines), not_zero(columns), 0)));
        let mut output = pair.master.try_clone_reader().expect("its output");
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("not poisoned").process(&bytes[..count]);
            }
        });
        let keys = pair.master.take_writer().expect("its input");
        Terminal { child, _master: pair.master, keys, screen }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the terminal is open");
    }

    fn screen(&self) -> String {
        self.screen.lock().expect("not poisoned").screen().contents()
    }

    /// Whether what stands there is bold.
    pub fn is_bold(&self, line: u16, column: u16) -> bool {
        let screen = self.screen.lock().expect("not poisoned");
        screen.screen().cell(line, column).is_some_and(vt100::Cell::bold)
    }

    /// Waits until the screen is as it must be, and returns it.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        wait_for(|| {
            let screen = self.screen();
            if is_there(&screen) { Ok(screen) } else { Err(format!("{what} does not appear on\n{screen}")) }
        })
    }

    /// Waits until the program ends by itself, and says whether it does so without an error.
    #[track_caller]
    pub fn ends_well(&mut self) -> bool {
        let status = wait_for(|| {
            let ended = self.child.try_wait().expect("the child is ours");
            ended.ok_or_else(|| format!("the program goes on with\n{}", self.screen()))
        });
        status.success()
    }
}

fn not_zero(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has a size")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
