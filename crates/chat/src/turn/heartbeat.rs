//! One heartbeat for all turns of a process, and the settling of turns whose process is gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tale_core::ids::{MessageId, ThreadId};
use tale_db::hints::{self, Hint, Topic};
use tokio_util::sync::CancellationToken;

use crate::parts::readable;
use crate::service::Inner;
use crate::store::generations::Beats;
use crate::store::{generations, messages, threads};
use crate::turn::live::LiveTurn;

/// How often a process writes the state of its turns: also how late a stop from another process
/// arrives, and how much text a crash can lose.
const BEAT: Duration = Duration::from_secs(1);

/// Bytes of JSON after which a statement of the heartbeat is full.
const SLICE: usize = 256 * 1024;

/// Beats between two looks for turns without a process.
const BEATS_PER_LOOK: u32 = 5;

/// A turn is suspect after this long without a beat and is settled when the next look, at least
/// [`BEATS_PER_LOOK`] beats later, finds the very same beat: a database that was away for a while
/// must not cost the turns that waited for it. Together under 30 s after a restart.
const STALE_SECONDS: f64 = 15.0;

/// Beats until `stop`.
pub(crate) async fn run(chat: Arc<Inner>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut suspects = HashMap::new();
    let (mut count, mut silent) = (0u32, false);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = beat(&chat).await {
            if !std::mem::replace(&mut silent, true) {
                tracing::warn!(event = "turn.heartbeat_fails", %error, turns = chat.live.all().len(), "the heartbeat of running turns cannot be written, trying until it can");
            }
            continue;
        }
        if std::mem::replace(&mut silent, false) {
            tracing::info!(event = "turn.heartbeat_again", "the heartbeat of running turns is written again");
        }
        count = count.wrapping_add(1);
        if count.is_multiple_of(BEATS_PER_LOOK)
            && let Err(error) = look(&chat, &mut suspects).await
        {
            tracing::warn!(%error, "turns of lost processes could not be looked up");
        }
    }
}

/// Writes the state of all turns of this process and obeys stops that came in elsewhere: a statement
/// for every [`SLICE`] of text, so that a beat needs the memory of one slice, however many turns run.
pub(crate) async fn beat(chat: &Inner) -> sqlx::Result<()> {
    let turns = chat.live.all();
    let mut rest = turns.as_slice();
    while !rest.is_empty() {
        let (slice, beats) = take_slice(rest);
        rest = &rest[slice.len()..];
        let stopped = match write(chat, beats).await {
            Ok(stopped) => stopped,
            Err(error) => {
                slice.iter().for_each(|turn| turn.put_back());
                return Err(error);
            }
        };
        for turn in slice.iter().filter(|turn| stopped.contains(&turn.thread)) {
            turn.cancel.cancel();
        }
    }
    Ok(())
}

/// The first turns whose changed parts make up a slice, and what to write of them.
fn take_slice(turns: &[Arc<LiveTurn>]) -> (&[Arc<LiveTurn>], Beats) {
    let mut beats = Beats::default();
    let (mut bytes, mut count) = (0, 0);
    for turn in turns {
        let (status, parts) = turn.take_dirty();
        bytes += parts.as_ref().map_or(0, String::len);
        beats.threads.push(turn.thread.0);
        beats.statuses.push(status.text());
        beats.parts.push(parts);
        count += 1;
        if bytes >= SLICE {
            break;
        }
    }
    (&turns[..count], beats)
}

async fn write(chat: &Inner, beats: Beats) -> sqlx::Result<Vec<ThreadId>> {
    let mut conn = chat.db.acquire().await?;
    generations::beat(&mut conn, chat.owner, beats).await
}

/// The turns that looked dead at the last look, by the beat they showed.
pub(crate) type Suspects = HashMap<(ThreadId, MessageId), DateTime<Utc>>;

/// Settles turns that showed no sign of life at this look and the one before.
pub(crate) async fn look(chat: &Inner, suspects: &mut Suspects) -> sqlx::Result<usize> {
    let mut conn = chat.db.acquire().await?;
    let stale = generations::stale(&mut conn, STALE_SECONDS).await?;
    drop(conn);
    let mut seen = Suspects::new();
    let mut settled = 0;
    for row in stale {
        if chat.live.get(row.thread_id).is_some_and(|turn| turn.message == row.message_id) {
            // Ours and alive: only its beat could not be written for a while.
            continue;
        }
        let key = (row.thread_id, row.message_id);
        if suspects.get(&key) == Some(&row.heartbeat_at) {
            settled += usize::from(reap(chat, &row).await?);
        } else {
            seen.insert(key, row.heartbeat_at);
        }
    }
    *suspects = seen;
    Ok(settled)
}

/// Settles every turn there is, when none of them can be alive.
pub(crate) async fn settle_abandoned(chat: &Inner) -> sqlx::Result<usize> {
    let mut settled = 0;
    loop {
        let mut conn = chat.db.acquire().await?;
        let rows = generations::stale(&mut conn, 0.0).await?;
        drop(conn);
        let before = settled;
        for row in &rows {
            settled += usize::from(reap(chat, row).await?);
        }
        if settled == before {
            return Ok(settled);
        }
    }
}

/// The sentence of a reply that a restart cut.
pub(crate) const RESTARTED: &str =
    "The server was restarted while this reply was being written. What had arrived is kept.";

/// Settles one lost turn with what it had streamed: cancelled if the person had asked for it,
/// otherwise failed.
async fn reap(chat: &Inner, row: &generations::GenerationRow) -> sqlx::Result<bool> {
    let now = chat.clock.now();
    let mut tx = chat.db.begin().await?;
    if !generations::reap(&mut tx, row).await? {
        return Ok(false);
    }
    let parts = &row.parts.0;
    let stopped = row.cancel_requested;
    messages::settle(
        &mut tx,
        row.org_id,
        row.message_id,
        &messages::Settlement {
            status: if stopped { "cancelled" } else { "failed" },
            parts,
            search_text: &readable(parts),
            usage: row.usage.as_ref().map(|usage| usage.0),
            error: (!stopped).then_some(RESTARTED),
            error_code: (!stopped).then_some("provider_error"),
            finish_reason: stopped.then_some("cancelled"),
            context_dropped: 0,
            step_limit_hit: false,
            interrupted: !stopped,
            started_at: None,
            first_token_at: None,
            now,
        },
    )
    .await?;
    threads::mark_answered(&mut tx, row.org_id, row.thread_id, !stopped, now).await?;
    for topic in [Topic::Thread, Topic::Threads] {
        hints::notify(&mut tx, &Hint { org: row.org_id, topic, id: Some(row.thread_id.0), user: None }).await?;
    }
    tx.commit().await?;
    chat.parked.notify_one();
    tracing::warn!(event = "turn.lost", thread = %row.thread_id, message = %row.message_id, "settled a turn whose process is gone");
    Ok(true)
}
