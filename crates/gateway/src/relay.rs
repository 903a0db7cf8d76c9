//! Bytes of an upstream to a client: time limits, signs of life, the charge.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tale_models::wire::Relayed;
use tale_models::{ModelError, ModelErrorCode, ResolvedModel};
use tokio::time::Instant;

use crate::answer::Translation;
use crate::lanes::Place;
use crate::meter::Meter;
use crate::refusal::{Refusal, error_body};
use crate::wire::Wire;

/// How often a silent stream shows that it lives (MOD-120).
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long late usage is waited for after the model said that it is done.
const AFTER_FINISH: Duration = Duration::from_secs(10);
/// How long the end of the body is waited for after everything was said.
const AFTER_ALL: Duration = Duration::from_millis(250);
/// Longest answer that is not streamed, unless silence may last longer (MOD-145).
const WHOLE: Duration = Duration::from_secs(600);
/// Longest stream.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// The call of a provider, under way.
pub(crate) type Started = BoxFuture<'static, Result<Relayed, ModelError>>;

/// One call and everything that ends with it.
pub(crate) struct Relay {
    pub(crate) translation: Translation,
    pub(crate) meter: Meter,
    pub(crate) model: Arc<ResolvedModel>,
    pub(crate) wire: Wire,
    /// Longest silence of the upstream.
    pub(crate) idle: Duration,
    /// Tokens of all answers together after which the provider is not believed any more to keep to the limit.
    pub(crate) most_output: u64,
    /// What the call occupies until it ends.
    pub(crate) _place: Place,
}

impl Relay {
    /// The whole answer, for a client that does not stream.
    pub(crate) async fn whole(mut self, started: Started) -> Result<String, Refusal> {
        let all = WHOLE.max(self.idle);
        let read = tokio::time::timeout(all, async {
            let relayed = match started.await {
                Ok(relayed) => relayed,
                Err(error) => return Err((error, true)),
            };
            self.read_whole(relayed).await.map_err(|error| (error, false))
        });
        match read.await.unwrap_or_else(|_| Err((silent(all), false))) {
            Ok(answer) => {
                let decoder = self.translation.decoder();
                self.meter.complete(self.translation.tokens(), decoder.relayed_tokens());
                self.meter.booked().await;
                Ok(answer)
            }
            Err((error, before)) => Err(self.refused(error, before)),
        }
    }

    async fn read_whole(&mut self, relayed: Relayed) -> Result<String, ModelError> {
        let mut out = String::new();
        let mut body = relayed.body;
        self.translation.answered(relayed.document);
        self.check_form()?;
        while let Some(piece) = self.next(&mut body, self.idle).await? {
            self.push(&piece, &mut out)?;
            if self.translation.decoder().done() {
                tail(&mut body).await;
                break;
            }
        }
        self.translation.finish(&mut out)?;
        Ok(out)
    }

    /// The refusal of a call that failed before anything reached the client.
    fn refused(mut self, error: ModelError, before_answer: bool) -> Refusal {
        let error = self.scrubbed(error);
        let refusal = Refusal::of_provider(&error, &self.model.provider_name);
        self.meter.answered(refusal.status());
        // Whoever refuses has done nothing; whoever fell silent may have.
        if before_answer && error.before_work() {
            self.meter.refused();
        }
        refusal
    }

    /// The stream for the client. Waits for the provider's first word for as long as nobody would
    /// think the connection dead, so that a refusal still has its status.
    pub(crate) async fn stream(mut self, mut started: Started) -> Result<BoxStream<'static, Bytes>, Refusal> {
        let begun = tokio::select! {
            biased;
            relayed = &mut started => match relayed {
                Ok(relayed) => Some(relayed),
                Err(error) => return Err(self.refused(error, true)),
            },
            () = tokio::time::sleep(HEARTBEAT) => None,
        };
        let stream = async_stream::stream! {
            let mut begun = begun;
            if begun.is_none() {
                yield comment();
            }
            while begun.is_none() {
                match tokio::time::timeout(HEARTBEAT, &mut started).await {
                    Ok(Ok(relayed)) => begun = Some(relayed),
                    Ok(Err(error)) => {
                        yield self.last_words(error, true);
                        return;
                    }
                    Err(_) => yield comment(),
                }
            }
            let Some(relayed) = begun else { return };
            drop(started);
            let mut body = relayed.body;
            self.translation.answered(relayed.document);
            if let Err(error) = self.check_form() {
                yield self.last_words(error, false);
                return;
            }
            let until = Instant::now() + LIFETIME;
            let (mut out, mut heard, mut spoke) = (String::new(), Instant::now(), Instant::now());
            loop {
                let decoder = self.translation.decoder();
                let silence = if decoder.complete() {
                    AFTER_ALL
                } else if decoder.finished() {
                    AFTER_FINISH
                } else {
                    self.idle
                };
                let deadline = (heard + silence).min(until);
                let wake = deadline.min(spoke + HEARTBEAT);
                let piece = match tokio::time::timeout_at(wake, body.next()).await {
                    Ok(piece) => piece,
                    Err(_) if Instant::now() < deadline => {
                        spoke = Instant::now();
                        yield comment();
                        continue;
                    }
                    Err(_) if self.translation.decoder().finished() => None,
                    Err(_) => Some(Err(if deadline == until { silent(LIFETIME) } else { silent(self.idle) })),
                };
                heard = Instant::now();
                let over = piece.is_none();
                let read = match piece {
                    Some(Ok(bytes)) => self.push(&bytes, &mut out),
                    Some(Err(error)) => Err(error),
                    None => Ok(()),
                };
                // What came before an error is the client's all the same.
                let over = over || self.translation.decoder().done();
                let read = read.and_then(|()| if over { self.translation.finish(&mut out) } else { Ok(()) });
                if over && read.is_ok() {
                    let output = self.translation.decoder().relayed_tokens();
                    self.meter.complete(self.translation.tokens(), output);
                    self.meter.booked().await;
                }
                if !out.is_empty() {
                    spoke = Instant::now();
                    yield Bytes::from(std::mem::take(&mut out));
                }
                if let Err(error) = read {
                    yield self.last_words(error, false);
                    return;
                }
                if over {
                    tail(&mut body).await;
                    return;
                }
            }
        };
        Ok(stream.boxed())
    }

    /// An error after the stream began.
    fn last_words(mut self, error: ModelError, before_answer: bool) -> Bytes {
        let error = self.scrubbed(error);
        let refusal = Refusal::of_provider(&error, &self.model.provider_name);
        let body = error_body(self.wire, refusal.status(), &refusal.problem);
        let event = self.translation.failed(&body);
        self.refused(error, before_answer);
        Bytes::from(event)
    }

    async fn next(
        &self,
        body: &mut BoxStream<'static, Result<Bytes, ModelError>>,
        silence: Duration,
    ) -> Result<Option<Bytes>, ModelError> {
        tokio::time::timeout(silence, body.next()).await.map_err(|_| silent(silence))?.transpose()
    }

    fn push(&mut self, bytes: &[u8], out: &mut String) -> Result<(), ModelError> {
        let read = self.translation.push(bytes, out);
        let output = self.translation.decoder().relayed_tokens();
        let delivered = self.translation.decoder().delivered_tokens();
        self.meter.relayed(self.translation.tokens(), output, delivered);
        if output > self.most_output {
            return Err(ModelError::new(
                ModelErrorCode::ProviderError,
                "The provider writes far more than the call's limit, so the call was ended.",
            ));
        }
        read
    }

    fn check_form(&self) -> Result<(), ModelError> {
        if self.translation.loses_answers() {
            let why = "The provider answered in another form than was asked for. Ask for one answer at a time.";
            return Err(ModelError::new(ModelErrorCode::ProviderError, why));
        }
        Ok(())
    }

    /// An error without the key and without the provider's address.
    fn scrubbed(&self, error: ModelError) -> ModelError {
        error.scrubbed(self.model.target.secret.as_ref(), &self.model.target.base)
    }
}

/// Reads to the end of a body that has said everything, so that its connection can be used again.
async fn tail(body: &mut BoxStream<'static, Result<Bytes, ModelError>>) {
    let _ = tokio::time::timeout(AFTER_ALL, async { while let Some(Ok(_)) = body.next().await {} }).await;
}

fn silent(wait: Duration) -> ModelError {
    ModelError::new(
        ModelErrorCode::ProviderError,
        format!("The provider did not go on for {} seconds, so the call was given up.", wait.as_secs()),
    )
}

fn comment() -> Bytes {
    Bytes::from_static(b": waiting\n\n")
}
