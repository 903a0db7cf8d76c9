//! Answers that still hold.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::message::{Question, Reply};

/// Most answers that are kept.
const MAX_ANSWERS: usize = 4_096;

/// Answers with the moment of each. The oldest makes room.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    answers: HashMap<Question, Kept>,
    order: VecDeque<Question>,
}

#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub reply: Arc<Reply>,
    pub at: Instant,
}

impl Kept {
    /// Seconds since the answer was given.
    pub(crate) fn age(&self, now: Instant) -> u32 {
        u32::try_from(now.duration_since(self.at).as_secs()).unwrap_or(u32::MAX)
    }
}

impl Cache {
    /// An answer that holds at `now`.
    pub(crate) fn get(&self, question: &Question, now: Instant) -> Option<Kept> {
        let kept = self.answers.get(question)?;
        let holds = now.duration_since(kept.at) < Duration::from_secs(u64::from(kept.reply.ttl));
        holds.then(|| kept.clone())
    }

    /// Keeps an answer for as long as it says.
    pub(crate) fn put(&mut self, question: Question, reply: Arc<Reply>, now: Instant) {
        if reply.ttl == 0 {
            return;
        }
        if self.answers.insert(question.clone(), Kept { reply, at: now }).is_none() {
            self.order.push_back(question);
        }
        while self.order.len() > MAX_ANSWERS {
            if let Some(oldest) = self.order.pop_front() {
                self.answers.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::A;
    use super::*;

    fn question(n: usize) -> Question {
        Question { name: format!("host-{n}.example").into(), kind: A }
    }

    fn reply(ttl: u32) -> Arc<Reply> {
        Arc::new(Reply::of_addresses(Vec::new(), &[], ttl))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_as_long_as_it_says() {
        let mut cache = Cache::default();
        cache.put(question(1), reply(30), Instant::now());
        cache.put(question(2), reply(0), Instant::now());
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(cache.get(&question(1), Instant::now()).unwrap().age(Instant::now()), 29);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(cache.get(&question(1), Instant::now()).is_none());
        assert!(cache.get(&question(2), Instant::now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_answer_makes_room() {
        let mut cache = Cache::default();
        for n in 0..=MAX_ANSWERS {
            cache.put(question(n), reply(30), Instant::now());
        }
        assert!(cache.get(&question(0), Instant::now()).is_none());
        assert!(cache.get(&question(MAX_ANSWERS), Instant::now()).is_some());
        assert_eq!(cache.answers.len(), MAX_ANSWERS);
    }
}
