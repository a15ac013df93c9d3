//! The picture shows what the data say: asked of a real browser, with pixels.
//!
//! A probe in the page reads where every point lies on the screen and computes, from the ticks of
//! the axes alone, where it should lie; the values are compared with the rows of the file. The
//! same run asks whether labels cover each other, whether something leaves the picture or the
//! page, and whether text has contrast, in light and dark, on a desk and on a phone.
//!
//! The browser is Chromium, headless and without network. Where it is absent the test says so
//! and is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qspin_lab::report::{Format, Run, read};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(90);

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|candidate| candidate.is_file())
}

/// The scheme and width of a screen.
#[derive(Clone, Copy, Debug)]
struct Screen {
    dark: bool,
    width: u32,
}

/// What the browser shows of the page on the screen, as the probe found it.
fn look(browser: &Path, page: &str, screen: Screen) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let probe = format!("<script>{}</script></body>", include_str!("browser/probe.js"));
    let probed = page.replace("</body>", &probe);
    assert_ne!(page, probed);
    fs::write(directory.path().join("page.html"), probed).unwrap();
    // A window can not be as narrow as a phone; a frame can.
    let frame = format!(
        "<!doctype html><iframe src=page.html width={} height=900></iframe><script>\
         addEventListener('message', (event) => {{ const node = document.createElement('pre'); \
         node.id = 'found'; node.textContent = event.data; document.body.append(node); }});\
         </script>",
        screen.width
    );
    let frame_file = directory.path().join("frame.html");
    fs::write(&frame_file, frame).unwrap();
    let dump = directory.path().join("dump");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom"])
        // 0 is dark, 1 is light.
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!screen.dark)))
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg(format!("file://{}", frame_file.display()))
        .stdout(fs::File::create(&dump).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the browser did not finish within {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let dom = fs::read_to_string(&dump).unwrap();
    let found =
        dom.split("<pre id=\"found\">").nth(1).unwrap_or_else(|| panic!("no answer: {dom}"));
    let found = found.split("</pre>").next().unwrap();
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&found).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn run() -> Vec<Run> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/two-cpus.jsonl");
    read(&[path]).unwrap()
}

/// Threads and lock to the value.
type Expected = BTreeMap<(u64, String), f64>;

fn expected(run: &Run, value: impl Fn(&qspin_lab::row::Row) -> f64) -> Expected {
    run.rows
        .iter()
        .filter(|row| !["empty", "floor"].contains(&row.lock.as_str()))
        .map(|row| ((u64::from(row.threads), row.lock.clone()), value(row)))
        .collect()
}

/// Every row is a point, at the place that the axes give its value.
fn check_chart(chart: &Value, expected: &Expected, screen: Screen) {
    let title = &chart["title"];
    let points = chart["points"].as_array().unwrap();
    let shown: Expected = points
        .iter()
        .map(|point| {
            let lock = point["lock"].as_str().unwrap().to_owned();
            ((point["threads"].as_u64().unwrap(), lock), number(&point["value"]))
        })
        .collect();
    assert_eq!(&shown, expected, "{title}: other points than rows");
    assert_eq!(points.len(), expected.len());
    for point in points {
        // Coordinates have a tenth of a pixel and the picture is scaled to the page.
        assert!(
            number(&point["dx"]) < 0.7 && number(&point["dy"]) < 0.7,
            "{title} {screen:?}: {point}"
        );
    }
    // And in words without arithmetic: a larger value is never lower on the screen.
    for one in points {
        for other in points {
            if number(&one["value"]) > number(&other["value"]) {
                assert!(number(&one["y"]) < number(&other["y"]) + 0.7, "{title}: {one} {other}");
            }
        }
    }
}

/// The border lies at the number of CPUs, and only what is right of it is shaded.
fn check_border(chart: &Value, cpus: f64) {
    let border = &chart["border"];
    assert!((number(&border["room"]) - cpus).abs() < 1e-9);
    let mut columns = border["columns"].as_array().unwrap().iter();
    let column = columns.find(|tick| (number(&tick["value"]) - cpus).abs() < 1e-9).unwrap();
    assert!((number(&column["at"]) - number(&border["x"])).abs() < 0.7);
    assert!((number(&chart["over"][0]) - number(&border["x"])).abs() < 1.0);
}

fn check_waits(found: &Value, run: &Run) {
    let panels = found["waits"].as_array().unwrap();
    assert_eq!(panels.len(), 4, "a panel for each number of threads");
    for (panel, threads) in panels.iter().zip([1, 2, 4, 8]) {
        let points = panel.as_array().unwrap();
        for row in run.rows.iter().filter(|row| row.threads == threads) {
            let Some(wait) = row.wait_ns else { continue };
            if ["empty", "floor"].contains(&row.lock.as_str()) {
                continue;
            }
            for (what, value) in [
                ("p50", wait.p50),
                ("p99", wait.p99),
                ("p999", wait.p999),
                ("max", wait.max),
                ("worst", wait.worst_thread_p999),
            ] {
                let point = points
                    .iter()
                    .find(|point| point["lock"] == *row.lock && point["what"] == what)
                    .unwrap_or_else(|| panic!("{} has no {what} at {threads}", row.lock));
                assert!((number(&point["value"]) - value).abs() < 1e-9);
                assert!(number(&point["dx"]) < 0.7, "{point}");
            }
        }
        let mut tails: Vec<(f64, f64)> = points
            .iter()
            .filter(|point| point["what"] == "p999")
            .map(|point| (number(&point["y"]), number(&point["value"])))
            .collect();
        tails.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(tails.is_sorted_by(|a, b| a.1 <= b.1), "shortest p99.9 first: {tails:?}");
    }
}

fn check_page(found: &Value, screen: Screen) {
    assert_eq!(found["covered"], Value::Array(vec![]), "labels cover each other {screen:?}");
    assert_eq!(found["outside"], Value::Array(vec![]), "text leaves its picture {screen:?}");
    assert!(number(&found["sideways"]) <= 0.0, "the page is wider than {screen:?}: {found}");
    for contrast in found["contrast"].as_array().unwrap() {
        assert!(number(contrast) >= 4.5, "too little contrast {screen:?}: {}", found["contrast"]);
    }
}

/// Switches, tips and sorting do what they say.
fn check_script(found: &Value) {
    let switched: Vec<u64> =
        found["switched"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(switched[0] > 0 && switched[1] == 0 && switched[2] > 0 && switched[3] == switched[0]);
    assert!(found["tip"].as_str().unwrap().starts_with("native, 8 threads: "), "{}", found["tip"]);
    assert_eq!(found["lit"], serde_json::json!(["native"]));
    let sorted: Vec<f64> = found["sorted"].as_array().unwrap().iter().map(number).collect();
    assert!(sorted.is_sorted_by(|a, b| a >= b), "{sorted:?}");
}

#[test]
fn the_picture_shows_what_the_data_say() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: no chromium on the PATH, so the page cannot be looked at");
        return;
    };
    let runs = run();
    let page = Format::Html.render(&runs);
    let run = &runs[0];
    let charts = [
        expected(run, |row| row.ops_per_s.median),
        expected(run, |row| row.cpu_ns_per_op.unwrap()),
        expected(run, |row| row.overhead_ns_per_op.unwrap().max(0.0)),
    ];
    let mut grounds = Vec::new();
    for screen in [
        Screen { dark: false, width: 1200 },
        Screen { dark: true, width: 1200 },
        Screen { dark: false, width: 390 },
    ] {
        let found = look(&browser, &page, screen);
        assert_eq!(found["inner"].as_u64(), Some(u64::from(screen.width)));
        let shown = found["charts"].as_array().unwrap();
        assert_eq!(
            shown.len(),
            charts.len(),
            "one throughput chart is shown, not both: {screen:?}"
        );
        for (chart, expected) in shown.iter().zip(&charts) {
            check_chart(chart, expected, screen);
            check_border(chart, 2.0);
        }
        assert_eq!(shown[0]["log"], true, "a collapse by decades needs a logarithm");
        check_waits(&found, run);
        check_page(&found, screen);
        check_script(&found);
        grounds.push(found["ground"].as_str().unwrap().to_owned());
    }
    assert_ne!(grounds[0], grounds[1], "dark is not light");
    assert_eq!(grounds[0], grounds[2]);
}
