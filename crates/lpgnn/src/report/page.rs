//! The page: one file that holds its style, its script and its data.

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 5] = [
    include_str!("page/chart.js"),
    include_str!("page/graph.js"),
    include_str!("page/report.js"),
    include_str!("page/live.js"),
    include_str!("page/start.js"),
];

/// The page that shows this.
///
/// # Errors
///
/// When the data cannot be written as JSON.
pub(super) fn page(data: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    let data = in_script(&serde_json::to_string(data)?);
    // The data come last: nothing in them is taken for a marker.
    let page = PAGE.replacen("/*STYLE*/", STYLE, 1).replacen("/*SCRIPT*/", &SCRIPTS.join("\n"), 1);
    Ok(page.replacen("/*DATA*/", &data, 1))
}

/// JSON that may stand inside a script element, whatever names are in it.
fn in_script(json: &str) -> String {
    // Outside strings JSON has none of these, so they can be written as escapes everywhere.
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_the_script_or_is_taken_for_a_marker() {
        let name = "</script><script>alert(1)</script><!--/*SCRIPT*/";
        let page = page(&serde_json::json!({ "title": name })).unwrap();
        assert_eq!(page.matches("<script").count(), 2);
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        assert_eq!(data["title"], name);
    }

    #[test]
    fn nothing_comes_from_the_network() {
        for part in SCRIPTS.into_iter().chain([STYLE, PAGE]) {
            let addresses = part.replace("http://www.w3.org/2000/svg", "");
            assert!(!addresses.contains("http:") && !addresses.contains("https:"));
        }
    }
}
