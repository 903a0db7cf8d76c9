//! Branding at its doors: bytes in, headers out.

use serde_json::{Value, json};

use crate::stage::Stage;

const DRAWING: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0h2v1H0z'/></svg>";

#[tokio::test]
async fn an_image_is_what_its_bytes_say_and_is_served_so_that_it_can_do_nothing() {
    let mut stage = Stage::new().await;
    let logo = stage.app("branding/images/logo");
    // What the browser says of it does not count.
    let page = stage.owner.clone().with("content-type", "image/png");
    let saved = page.raw("PUT", &logo, DRAWING).await.expect(200);
    assert_eq!((&saved["version"], &saved["images"][0]["mediaType"]), (&json!(1), &json!("image/svg+xml")));
    let active = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    assert_eq!(page.raw("PUT", &logo, &active[..]).await.refusal(), (400, "IMAGE_SVG_ACTIVE_CONTENT".into()));
    let html = page.clone().with("content-type", "image/svg+xml").raw("PUT", &logo, "<!doctype html><p>").await;
    assert_eq!(html.refusal(), (400, "UNSUPPORTED_FILE_TYPE".into()));
    let large = page.raw("PUT", &logo, vec![0u8; (1 << 20) + 1]).await;
    assert_eq!(large.refusal(), (413, "BODY_TOO_LARGE".into()));
    assert_eq!(page.raw("PUT", &stage.app("branding/images/banner"), DRAWING).await.refusal().0, 404);
    assert_eq!(stage.get("branding").await.expect(200), saved);

    // Anybody may look at it.
    let mut nobody = stage.world.browser();
    let org = stage.org.clone();
    let published = nobody.get(&format!("/api/app/branding/published/{org}")).await.expect(200);
    let address = published["logo"].as_str().unwrap().to_owned();
    assert_eq!(saved["images"][0]["url"], address);
    let shown = nobody.get(&address).await;
    assert_eq!((shown.status.as_u16(), shown.bytes.as_slice()), (200, DRAWING));
    assert_eq!(shown.header("content-type"), "image/svg+xml; charset=utf-8");
    assert_eq!(shown.header("x-content-type-options"), "nosniff");
    assert!(shown.header("content-security-policy").starts_with("sandbox; default-src 'none'; style-src"));
    assert_eq!(shown.header("cache-control"), "public, max-age=31536000, immutable");
    let tag = shown.header("etag").to_owned();
    let known = nobody.clone().with("if-none-match", &tag).get(&address).await;
    assert_eq!((known.status.as_u16(), known.bytes.len(), known.header("etag")), (304, 0, tag.as_str()));
    let plain = address.split('?').next().unwrap();
    for stale in [plain.to_owned(), format!("{plain}?v=0")] {
        assert_eq!(nobody.get(&stale).await.header("cache-control"), "no-cache", "{stale}");
    }
    // Favicons are made of the logo.
    let icon = nobody.get(published["faviconDark"].as_str().unwrap()).await;
    assert_eq!((icon.status.as_u16(), icon.header("content-type")), (200, "image/svg+xml; charset=utf-8"));
    assert!(icon.header("content-security-policy").contains("img-src data:"));

    // Who has an image is told so by its tag alone: the content is not read.
    sqlx::query("DELETE FROM app.branding_images").execute(&stage.world.app.database).await.unwrap();
    assert_eq!(nobody.clone().with("if-none-match", &tag).get(&address).await.status.as_u16(), 304);
    assert_eq!(nobody.get(&address).await.refusal(), (404, "NOT_FOUND".into()));

    stage.owner.delete(&logo).await.expect(200);
    assert_eq!(nobody.get(&address).await.refusal(), (404, "NOT_FOUND".into()));
    for nothing in ["01900000-0000-7000-8000-000000000000", "x", &org] {
        let told = nobody.get(&format!("/api/app/branding/published/{nothing}")).await.expect(200);
        assert_eq!(told, json!({ "accentColor": null, "logo": null, "faviconLight": null, "faviconDark": null }));
    }
}

#[tokio::test]
async fn a_colour_is_saved_by_version_and_comes_with_the_session() {
    let mut stage = Stage::new().await;
    let branding = stage.app("branding");
    let of = |session: &Value| session["organizations"][0]["branding"].clone();
    assert_eq!(of(&stage.owner.get("/api/app/session").await.expect(200)), Value::Null);
    let form = json!({ "accentColor": "#AB12CD", "version": 0 });
    let saved = stage.owner.put(&branding, form.clone()).await.expect(200);
    assert_eq!(saved, json!({ "version": 1, "accentColor": "#ab12cd", "images": [] }));
    assert_eq!(stage.owner.put(&branding, form).await.refusal(), (409, "CONFIG_VERSION_CONFLICT".into()));
    for (form, field) in [
        (json!({ "version": 1 }), "accentColor"),
        (json!({ "accentColor": "#ab12cd" }), "version"),
        (json!({ "accentColor": "red", "version": 1 }), "accentColor"),
        (json!({ "accentColor": "#ab12cd", "version": 1, "logo": "x" }), "logo"),
    ] {
        let refused = stage.owner.put(&branding, form).await.expect(400);
        assert_eq!(refused["data"]["issues"][0]["path"], field);
    }
    assert_eq!(of(&stage.owner.get("/api/app/session").await.expect(200))["accentColor"], "#ab12cd");
    assert_eq!(stage.owner.delete(&branding).await.expect(200)["version"], 2);
    assert_eq!(of(&stage.owner.get("/api/app/session").await.expect(200)), Value::Null);
}
