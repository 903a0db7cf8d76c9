//! What readers think of a reply: a thumb and a comment (CHT-136 … CHT-139).

use tale_core::Problem;
use tale_core::ids::{MessageId, ThreadId};

use crate::message;
use crate::service::{Chat, Owner};
use crate::store::feedback::{self, Feedback};
use crate::store::{messages, threads};

/// A thumb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// Helpful.
    Up,
    /// Not helpful.
    Down,
}

impl Rating {
    fn text(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl Chat {
    /// Rates a reply, or withdraws the rating with its comment (CHT-136 … CHT-138). A rating takes
    /// the place of the one before, with or without a comment.
    ///
    /// # Errors
    /// `MESSAGE_NOT_FOUND`, `INVALID_BODY`.
    pub async fn rate(
        &self,
        owner: &Owner,
        id: ThreadId,
        message: MessageId,
        rating: Option<Rating>,
        comment: Option<&str>,
    ) -> Result<(), Problem> {
        let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
        if comment.is_some_and(|comment| comment.chars().count() > 2_000) {
            return Err(Problem::invalid_field("comment", "must be at most 2000 characters"));
        }
        let inner = &self.0;
        let mut tx = inner.db.begin().await?;
        threads::find(&mut tx, owner.org, owner.user, id).await?.ok_or_else(message::not_found)?;
        let row = messages::find(&mut tx, owner.org, id, message).await?;
        row.filter(|row| row.role == "assistant" && row.status != "pending").ok_or_else(message::not_found)?;
        match rating {
            Some(rating) => {
                let given = Feedback { message, user: owner.user, rating: rating.text(), comment };
                feedback::rate(&mut tx, owner.org, &given, inner.clock.now()).await?;
            }
            None => feedback::unrate(&mut tx, owner.org, message, owner.user).await?,
        }
        tx.commit().await?;
        Ok(())
    }
}
