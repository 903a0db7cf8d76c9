//! Keeps what this process leases: asks for more, writes calls down, hears what is called back, and gives back
//! what nobody uses. Nothing of it begins before a call has an allowance to pay for it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use sqlx::PgConnection;
use tale_db::channels::{ChannelEvent, ChannelListener};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::leases::{Batch, IDLE};
use super::line::Line;
use super::store::Ended;
use super::store::leases::{self, CHANNEL, Entry};
use super::{Inner, writer};

/// How long calls are collected before they are written down. A call that runs is written within two of them, one
/// that ended within one.
const COLLECT: Duration = Duration::from_millis(10);
/// Calls in one statement.
const AT_ONCE: usize = 1_000;
/// Leases that are asked for at the same time.
const ASKS_AT_ONCE: usize = 4;
/// How often the database is told that the owner of leases lives.
const BEAT: Duration = Duration::from_secs(20);
/// After how much silence of its owner, as this process has seen it, a lease is ended.
const SILENCE: Duration = Duration::from_secs(300);
/// Leases of others that are looked at.
const MOST_OTHERS: i64 = 10_000;
/// How long a call that finds no room waits until others have given back what they do not need.
const RECALL: Duration = Duration::from_millis(500);
/// How long the end of an allowance waits until nobody pays from it any more: long enough for a process that is slow,
/// so that only one that is gone is not waited for.
pub(super) const REVOCATION: Duration = Duration::from_secs(3);
/// First pause before it is looked whether they have; doubles.
const LOOK: Duration = Duration::from_millis(3);
/// Pauses between attempts to write.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// What is called back now, so that whoever needs the same waits for the same.
#[derive(Default)]
pub(super) struct Recalls(Mutex<HashMap<Uuid, watch::Receiver<()>>>);

/// Takes a recall off the list, whatever becomes of whoever makes it.
struct Recalling<'a>(
    &'a Recalls,
    Uuid,
    #[expect(dead_code, reason = "its end is what others wait for")] watch::Sender<()>,
);

impl Drop for Recalling<'_> {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

impl Recalls {
    /// The right to call back, or the end of somebody else's.
    fn enter(&self, id: Uuid) -> Result<Recalling<'_>, watch::Receiver<()>> {
        let mut recalls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = recalls.get(&id) {
            return Err(other.clone());
        }
        let (end, ended) = watch::channel(());
        recalls.insert(id, ended);
        Ok(Recalling(self, id, end))
    }
}

impl Inner {
    /// Keeps leases for as long as it is polled.
    pub(super) async fn keep_leases(&self) {
        self.leases.asks.notified().await;
        tokio::join!(self.listen(), self.ask(), self.write_calls());
    }

    async fn listen(&self) {
        let mut listener = ChannelListener::new(&self.pool, &[CHANNEL]);
        let live = listener.live();
        loop {
            match listener.next().await {
                ChannelEvent::Resync => self.leases.listening(&live),
                ChannelEvent::Notification { payload, .. } => {
                    if let Ok(id) = payload.parse() {
                        self.leases.surrender(id);
                    }
                }
            }
        }
    }

    async fn ask(&self) {
        let (mut beaten, mut tidied) = (Instant::now(), Instant::now());
        let mut watching = true;
        loop {
            futures::stream::iter(self.leases.asked())
                .for_each_concurrent(ASKS_AT_ONCE, async |asked| {
                    let at = (Instant::now(), self.clock.now());
                    let granted = leases::lease(&self.pool, self.owner, at.1, &asked).await;
                    let granted = granted.unwrap_or_else(|error| {
                        tracing::debug!(%error, "nothing could be leased of an allowance");
                        None
                    });
                    self.leases.answered(&asked, at, granted);
                })
                .await;
            if tidied.elapsed() >= IDLE / 5 {
                tidied = Instant::now();
                let (watched, leasing) = self.leases.tidy();
                watching = watched;
                if leasing && beaten.elapsed() >= BEAT {
                    beaten = Instant::now();
                    let at = (beaten, self.clock.now());
                    match leases::beat(&self.pool, self.owner).await {
                        Ok(alive) => self.leases.beaten(at, &alive),
                        Err(error) => tracing::warn!(%error, "leases could not be confirmed, trying again"),
                    }
                }
            }
            let asks = self.leases.asks.notified();
            if watching {
                let _ = tokio::time::timeout(IDLE / 5, asks).await;
            } else {
                asks.await;
                watching = true;
            }
        }
    }

    async fn write_calls(&self) {
        let mut line = Line::new(self.pool.clone());
        loop {
            match self.leases.next_batch() {
                Some(batch) => self.write_down(&mut line, &batch).await,
                None => line.wait(self.leases.work.notified()).await,
            }
            let until = Instant::now() + COLLECT;
            while !self.leases.is_urgent() {
                if tokio::time::timeout_at(until, self.leases.work.notified()).await.is_err() {
                    break;
                }
            }
        }
    }

    async fn write_down(&self, line: &mut Line, batch: &Batch) {
        for ended in self.write_batch(line, batch).await {
            self.writer().end_later(ended).await;
        }
        self.leases.over(batch);
    }

    /// Writes until it is written. Answers the ends of calls that have a hold now.
    async fn write_batch(&self, line: &mut Line, batch: &Batch) -> Vec<Ended> {
        let mut pause = RETRY_MIN;
        loop {
            match self.try_batch(line, batch).await {
                Ok(ended) => return ended,
                Err(error) => {
                    line.hang_up();
                    self.leases.failed();
                    tracing::warn!(%error, calls = batch.entries.len(), "calls could not be written down yet");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    async fn try_batch(&self, line: &mut Line, batch: &Batch) -> sqlx::Result<Vec<Ended>> {
        let (db, mut alive) = (line.get().await?, Vec::new());
        for entries in batch.entries.chunks(AT_ONCE) {
            alive.extend(self.journal(db, entries).await?);
        }
        if !batch.closing.is_empty() {
            let closing: Vec<_> = batch.closing.iter().map(|id| (*id, None)).collect();
            leases::end(db, self.clock.now(), &closing).await?;
        }
        Ok(self.leases.written(batch, &alive))
    }

    /// Writes entries together; one by one when the database refuses that.
    async fn journal(&self, db: &mut PgConnection, entries: &[Entry]) -> sqlx::Result<Vec<Uuid>> {
        let who = (self.owner, self.stripe);
        let refused = |error: &sqlx::Error| error.as_database_error().is_some() && !writer::conflicted(error);
        let written = leases::journal(&mut *db, who, self.clock.now(), entries).await;
        match written {
            Err(error) if refused(&error) => {}
            written => return written,
        }
        let mut alive = Vec::new();
        for one in entries {
            match leases::journal(&mut *db, who, self.clock.now(), std::slice::from_ref(one)).await {
                Err(error) if refused(&error) => {
                    tracing::error!(%error, call = %one.id, "a call cannot be written down and is not booked")
                }
                written => alive.extend(written?),
            }
        }
        Ok(alive)
    }

    /// Writes everything down and gives everything back. For the end of the process.
    pub(super) async fn close_leases(&self) {
        let Some(last) = self.leases.close() else { return };
        let mut line = Line::new(self.pool.clone());
        while *self.leases.done.borrow() < last {
            match self.leases.next_batch() {
                Some(batch) => self.write_down(&mut line, &batch).await,
                None => break,
            }
        }
        line.hang_up();
        self.writer().ended().await;
        // What was asked for at the last moment.
        let left = async {
            let own: Vec<_> = leases::own(&self.pool, self.owner).await?.into_iter().map(|id| (id, None)).collect();
            if own.is_empty() { Ok(0) } else { leases::end(&self.pool, self.clock.now(), &own).await }
        };
        if let Err(error) = left.await {
            tracing::warn!(%error, "leases could not be given back, which others will do");
        }
    }

    /// Has everybody give back what they lease of allowances, and waits for that as long as `patience`. Nothing is
    /// leased of them for a while.
    pub(super) async fn recall(&self, allowances: &[Uuid], patience: Duration) -> sqlx::Result<()> {
        let rounds = allowances.iter().filter_map(|id| self.leases.surrender(*id)).max();
        let waiting = async {
            if let Some(round) = rounds {
                self.leases.round(round).await;
            }
            let (mut pause, mut recall) = (LOOK, true);
            while !leases::leased(&self.pool, allowances, recall).await?.is_empty() {
                tokio::time::sleep(pause).await;
                (pause, recall) = (pause * 2, false);
            }
            Ok(())
        };
        tokio::time::timeout(patience, waiting).await.unwrap_or(Ok(()))
    }

    /// The same for whoever finds an allowance full: everybody who does at the same time waits for one recall.
    pub(super) async fn recall_together(&self, allowance: Uuid) -> sqlx::Result<()> {
        match self.recalls.enter(allowance) {
            Ok(_recalling) => self.recall(&[allowance], RECALL).await,
            Err(mut other) => {
                // Its end is an error: nothing is ever sent.
                let _ = other.changed().await;
                Ok(())
            }
        }
    }

    /// Ends leases of processes that are gone: those whose beat stands still, or all of other processes at once.
    pub(super) async fn sweep_leases(&self, at_once: bool) -> sqlx::Result<()> {
        let others = leases::others(&self.pool, self.owner, MOST_OTHERS).await?;
        let dead: Vec<(Uuid, Option<i64>)> = if at_once {
            others.into_iter().map(|(id, _)| (id, None)).collect()
        } else {
            let (mut seen, now) = (self.leases.seen.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
            let before = std::mem::take(&mut *seen);
            let mut dead = Vec::new();
            for (id, beat) in others {
                let since = before.get(&id).filter(|(known, _)| *known == beat).map_or(now, |(_, since)| *since);
                seen.insert(id, (beat, since));
                if now - since >= SILENCE {
                    dead.push((id, Some(beat)));
                }
            }
            dead
        };
        if dead.is_empty() {
            return Ok(());
        }
        let ended = leases::end(&self.pool, self.clock.now(), &dead).await?;
        tracing::info!(
            event = "usage.leases_ended",
            leases = ended,
            "gave back what processes that are gone had leased"
        );
        Ok(())
    }
}
