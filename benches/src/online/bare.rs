//! The peer of a urlRequest: bare hyper, one prepared select, and a body of the same size.

use std::cell::RefCell;
use std::convert::Infallible;
use std::process::ExitCode;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

thread_local! {
    static DATABASE: RefCell<Option<rusqlite::Connection>> = const { RefCell::new(None) };
}

/// Serves a table of keys and values: `GET /KEY`.
pub fn serve(database: &str) -> ExitCode {
    let database = database.to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("http://{}/", listener.local_addr().expect("bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let database = database.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(database.clone(), request));
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

async fn answer(database: String, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let key = &request.uri().path()[1..];
    let value = DATABASE.with_borrow_mut(|open| {
        let connection =
            open.get_or_insert_with(|| rusqlite::Connection::open(&database).expect("a database"));
        let mut select = connection.prepare_cached("SELECT value FROM bare WHERE key = ?1").expect("a table");
        select.query_row([key], |row| row.get::<_, String>(0)).expect("a row")
    });
    Ok(Response::new(Full::from(value)))
}
