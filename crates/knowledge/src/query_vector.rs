//! Searching with the organization's own embedding model, and what its failures mean to a search
//! (spec 60, 8.5).

use std::time::Duration;

use tale_core::{Code, Problem};

use crate::Knowledge;
use crate::dense::QueryVector;
use crate::embedder::{EmbedFailure, Purpose};
use crate::reach::Reach;
use crate::search::{SearchRequest, SearchResponse, checked_query};

/// When a provider that failed does not say when to come back.
const RETRY_AFTER: Duration = Duration::from_secs(10);

impl Knowledge {
    /// Searches within `reach` by words and, when the organization has an embedding model, by meaning.
    ///
    /// # Errors
    /// `INVALID_BODY` for a query that is empty or too long. `EMBEDDING_NOT_CONFIGURED` when the
    /// request requires the dense leg and there is no model. `EMBEDDING_CREDIT_EXHAUSTED`,
    /// `EMBEDDING_CREDENTIAL_REJECTED` and `EMBEDDING_UPSTREAM_ERROR` when the query could not be
    /// embedded, and `BUDGET_EXCEEDED` when a usage limit has no room for that, unless the request allows to go
    /// on by words. `KNOWLEDGE_UNAVAILABLE`, or the
    /// database's trouble.
    pub async fn search(&self, reach: &Reach, request: SearchRequest) -> Result<SearchResponse, Problem> {
        let query = checked_query(&request.query)?;
        let mut limited = None;
        let vector = match self.query_vector(reach, query).await {
            Ok(None) if request.require_dense => {
                return Err(Problem::new(
                    Code::EmbeddingNotConfigured,
                    "This organization has no embedding model, so it can only be searched by words. Choose one in the settings, or search without `requireDense`.",
                ));
            }
            Ok(vector) => vector,
            Err(problem) if request.allow_keyword_fallback && !request.require_dense => {
                tracing::info!(org = %reach.org(), code = problem.code.text(), "a query could not be embedded; the search goes on by words");
                limited = (problem.code == Code::BudgetExceeded).then(|| problem.message.into_owned());
                None
            }
            Err(problem) => return Err(problem),
        };
        let mut answer = self.searcher().search(reach, &request, vector.as_ref()).await?;
        answer.diagnostics.limited = limited;
        Ok(answer)
    }

    /// The query as a vector of the organization's model; `None` without a model.
    async fn query_vector(&self, reach: &Reach, query: &str) -> Result<Option<QueryVector>, Problem> {
        let org = reach.org();
        let Some(model) = self.embedder().model(org).await? else { return Ok(None) };
        let texts = [query.to_owned()];
        let values = match self.embedder().embed(org, &reach.payer(), &texts, Purpose::Search).await {
            Ok(mut vectors) if vectors.len() == 1 => vectors.remove(0),
            Ok(vectors) => {
                return Err(embedding_problem(EmbedFailure::Upstream(format!(
                    "{} vectors for one text",
                    vectors.len()
                ))));
            }
            Err(EmbedFailure::NotConfigured) => return Ok(None),
            Err(failure) => return Err(embedding_problem(failure)),
        };
        if u32::try_from(values.len()).ok() != Some(model.dimensions) {
            let sentence = format!("vectors of width {} instead of {}", values.len(), model.dimensions);
            return Err(embedding_problem(EmbedFailure::Refused(sentence)));
        }
        Ok(Some(QueryVector { model: model.stamp(), values }))
    }
}

/// What a search answers when its query could not be embedded.
fn embedding_problem(failure: EmbedFailure) -> Problem {
    let cause = failure.clone();
    const CREDIT: &str = "The embedding provider refuses the account: its balance or plan does not cover the request. Settle it with the provider, or search by words only.";
    const CREDENTIAL: &str =
        "The embedding provider rejects the stored credential, or it is disabled. Renew it in the settings.";
    const UPSTREAM: &str = "The embedding provider did not answer properly. Try again in a moment.";
    match failure {
        EmbedFailure::Limited(refusal) => return (*refusal).into(),
        EmbedFailure::CreditExhausted(_) => Problem::new(Code::EmbeddingCreditExhausted, CREDIT),
        EmbedFailure::CredentialRejected(_) | EmbedFailure::NotConfigured => {
            Problem::new(Code::EmbeddingCredentialRejected, CREDENTIAL)
        }
        EmbedFailure::RateLimited { after } => Problem::new(
            Code::EmbeddingUpstreamError,
            "The embedding provider asks to wait before the next request. Try again later.",
        )
        .retry_after(after.unwrap_or(RETRY_AFTER)),
        EmbedFailure::Refused(_) | EmbedFailure::Upstream(_) => {
            Problem::new(Code::EmbeddingUpstreamError, UPSTREAM).retry_after(RETRY_AFTER)
        }
    }
    .because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_codes_of_the_contract_and_say_when_waiting_helps() {
        let cases = [
            (EmbedFailure::CreditExhausted("402".into()), Code::EmbeddingCreditExhausted, false),
            (EmbedFailure::CredentialRejected("401".into()), Code::EmbeddingCredentialRejected, false),
            (EmbedFailure::RateLimited { after: None }, Code::EmbeddingUpstreamError, true),
            (EmbedFailure::Upstream("500".into()), Code::EmbeddingUpstreamError, true),
        ];
        for (failure, code, waits) in cases {
            let problem = embedding_problem(failure.clone());
            assert_eq!((problem.code, problem.retry_after.is_some()), (code, waits), "{failure:?}");
            assert!(!problem.message.contains("40"), "the provider's words stay in the log");
        }
    }
}
