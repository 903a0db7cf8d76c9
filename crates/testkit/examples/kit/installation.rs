//! A program under measurement, and the database of an installation.

use std::path::Path;
use std::process::{Child, Command};

use tokio::io::{AsyncBufReadExt, BufReader};

/// Ends a program the way a supervisor does, and waits for it.
pub(crate) fn end(child: &mut Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let _ = child.wait();
}

/// What a file of `NAME=value` lines says of a name.
pub(crate) fn value(file: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap().trim_matches('"').to_owned()
}

/// The address of the database of `tale dev`.
pub(crate) fn database(data: &Path) -> String {
    let running = std::fs::read_to_string(data.join("postgres/cluster/postmaster.pid")).unwrap();
    let running: Vec<&str> = running.lines().collect();
    let (password, port) = (value(&data.join("postgres/passwords"), "role"), running[3]);
    let socket = running[4].replace('/', "%2F");
    format!("postgres://tale:{password}@127.0.0.1:{port}/tale_app?sslmode=disable&host={socket}")
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What the first line that is understood says.
pub(crate) async fn line<T>(child: &mut Child, understood: impl Fn(&str) -> Option<T>) -> T {
    let stdout = tokio::process::ChildStdout::from_std(child.stdout.take().unwrap()).unwrap();
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(value) = understood(&line) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return value;
        }
    }
    panic!("the program ended before it was ready");
}
