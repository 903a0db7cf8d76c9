//! The demo model as a program of its own, for tests of whole deployments: `demo_model 0.0.0.0:8080`.

use std::io;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("say where to listen"))?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        tale_demo::serve(listener, CancellationToken::new()).await
    })
}
