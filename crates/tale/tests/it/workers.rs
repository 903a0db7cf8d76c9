//! What a worker says about itself, and what becomes of its work when it stops.

use std::sync::Arc;

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::roles::{Browser, Deployment, PATIENCE, PAUSE, client, healthcheck};

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_a_port_says_how_it_does_and_opens_no_door() {
    let deployment = Deployment::new().await;
    let port = free_port().to_string();
    let worker = deployment.backend("backend-worker", "worker", &[("TALE_WORKER_PORT", &port)]);
    assert_eq!(worker.said, "ready backend-worker");
    let get = async |path: &str| client().get(format!("http://127.0.0.1:{port}{path}")).send().await.unwrap();
    for (path, status) in
        [("/ping", 200), ("/ready", 200), ("/api/app/session", 404), ("/", 404), ("/metrics/backend", 404)]
    {
        assert_eq!(get(path).await.status(), status, "{path}");
    }
    let page = get("/metrics").await.text().await.unwrap();
    for series in
        ["tale_config_info{role=\"backend-worker\"", "tale_backend_jobs{state=\"ready\"} ", "process_open_fds"]
    {
        assert!(page.contains(series), "{series} missing in {page}");
    }
    assert_eq!(healthcheck(&["backend-worker", "--port", &port]), Some(0));
    assert_eq!(healthcheck(&["backend-worker"]), Some(2), "without a port there is nothing to ask");
}

/// A store in front of a store that never gives an object away.
struct Stalling {
    address: String,
    asked: Arc<Notify>,
}

impl Stalling {
    async fn before(store: &url::Url) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let behind = store.socket_addrs(|| None).unwrap()[0];
        let asked = Arc::new(Notify::new());
        let told = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let told = Arc::clone(&told);
                tokio::spawn(async move {
                    let (mut read, mut write) = TcpStream::connect(behind).await.unwrap().into_split();
                    let (mut ask, mut answer) = near.split();
                    let questions = async {
                        let mut head = [0; 16 * 1024];
                        loop {
                            let count = ask.read(&mut head).await.unwrap();
                            if head[..count].starts_with(b"GET ") {
                                told.notify_one();
                                std::future::pending::<()>().await;
                            }
                            if count == 0 || write.write_all(&head[..count]).await.is_err() {
                                return;
                            }
                        }
                    };
                    tokio::select! {
                        () = questions => {}
                        _ = copy(&mut read, &mut answer) => {}
                    }
                });
            }
        });
        Self { address, asked }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_stopping_worker_is_finished_by_another_and_nothing_is_there_twice() {
    let deployment = Deployment::new().await;
    let api = deployment.backend("api", "api", &[]);
    let ada = Browser::owner(&api).await;
    let stalling = Stalling::before(&deployment.store.endpoint).await;
    let slow = [("OBJECT_STORE_ENDPOINT", stalling.address.as_str()), ("SHUTDOWN_DRAIN_MS", "1000")];
    let mut first = deployment.backend("worker", "first", &slow);
    let document = ada.upload(&api, "kettles.txt", "The violet kettle sings at dawn.").await;
    tokio::time::timeout(PATIENCE, stalling.asked.notified()).await.expect("the job runs");

    first.signal();
    assert_eq!(first.code().await, Some(0), "{}", first.log());
    let jobs = "SELECT state, attempts FROM app.jobs WHERE kind = 'knowledge.index_file'";
    let left: Vec<(String, i32)> = sqlx::query_as(jobs).fetch_all(&deployment.db.app).await.unwrap();
    assert_eq!(left, [("ready".to_owned(), 0)], "handed back without the loss of an attempt");

    let second = deployment.backend("worker", "second", &[]);
    let finished = tokio::time::timeout(PATIENCE, async {
        let path = format!("documents/{document}");
        while ada.v1(Method::GET, &api, &path, None).await["indexing"]["status"] != "completed" {
            tokio::time::sleep(PAUSE * 10).await;
        }
    });
    finished.await.unwrap_or_else(|_| panic!("nobody finishes it:\n{}", second.log()));
    let passages = "SELECT count(*) FROM private_knowledge.chunks";
    let passages: i64 = sqlx::query_scalar(passages).fetch_one(&deployment.db.knowledge).await.unwrap();
    assert_eq!(passages, 1);
    let left: Vec<(String, i32)> = sqlx::query_as(jobs).fetch_all(&deployment.db.app).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
