//! Plots of studies, as SVG.

use std::fmt::Write;

use super::file::{Axis, Study};
use super::record::{Spot, StudyRecord};

/// Sizes, in pixels: a panel with its margins, and what lies above and below the panels.
const PANEL: (f64, f64) = (380.0, 270.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const LEGEND_LINE: f64 = 18.0;
/// Width of a legend entry: its mark, and about this much per letter.
const NAME: (f64, f64) = (50.0, 6.8);
/// Colours that are distinguishable with colour blindness and in greyscale (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d1f"];

/// All panels of a study side by side, two in a row, and the names of the lines below.
pub(super) fn plot(study: &Study, record: &StudyRecord) -> Result<String, std::fmt::Error> {
    let (series, panels) = (study.series(), &study.about.panels);
    let across = panels.len().min(2);
    let down = panels.len().div_ceil(2);
    let width = across as f64 * PANEL.0;
    let longest = series.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let name_width = NAME.0 + NAME.1 * longest as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful")]
    let per_line = ((width - 20.0) / name_width).max(1.0) as usize;
    let legend = series.len().div_ceil(per_line) as f64 * LEGEND_LINE;
    let height = down as f64 * PANEL.1 + legend + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escape(&study.about.title)
    );
    for (i, y) in panels.iter().enumerate() {
        let at = ((i % 2) as f64 * PANEL.0, (i / 2) as f64 * PANEL.1);
        let lines: Vec<Vec<Spot>> =
            series.iter().map(|series| record.line(study, series, y)).collect();
        panel(&mut svg, at, &study.about.x, y, &lines)?;
    }
    for (i, name) in series.iter().enumerate() {
        let x = 20.0 + (i % per_line) as f64 * name_width;
        let row = (i / per_line) as f64;
        let y = down as f64 * PANEL.1 + 10.0 + row * LEGEND_LINE;
        let colour = COLOURS[i % COLOURS.len()];
        writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/>\
             {}<text x=\"{}\" y=\"{}\">{}</text>",
            x + 24.0,
            mark(i, x + 12.0, y),
            x + 30.0,
            y + 4.0,
            escape(name)
        )?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn panel(
    svg: &mut String,
    (left, top): (f64, f64),
    x: &Axis,
    y: &Axis,
    lines: &[Vec<Spot>],
) -> std::fmt::Result {
    let spots = || lines.iter().flatten();
    let (x0, x1) = (left + LEFT, left + PANEL.0 - RIGHT);
    let (y0, y1) = (top + PANEL.1 - BOTTOM, top + TOP);
    let across = Ruler::new(spots().map(|spot| spot.x), x.log, (x0, x1));
    let up = Ruler::new(spots().flat_map(|spot| [spot.least, spot.largest]), y.log, (y0, y1));
    writeln!(
        svg,
        "<text x=\"{x0}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        y1 - 12.0,
        escape(y.label())
    )?;
    axes(svg, (&across, x.label()), &up)?;
    lines.iter().enumerate().try_for_each(|(i, line)| draw_line(svg, i, line, (&across, &up)))
}

/// The ticks of both axes, and the name of the one across.
fn axes(svg: &mut String, (across, label): (&Ruler, &str), up: &Ruler) -> std::fmt::Result {
    let ((x0, x1), (y0, _)) = (across.pixels, up.pixels);
    for (value, place) in up.ticks() {
        writeln!(
            svg,
            "<line x1=\"{x0}\" y1=\"{place:.1}\" x2=\"{x1}\" y2=\"{place:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            x0 - 6.0,
            place + 4.0
        )?;
    }
    for (value, place) in across.ticks() {
        writeln!(
            svg,
            "<line x1=\"{place:.1}\" y1=\"{y0}\" x2=\"{place:.1}\" y2=\"{}\" stroke=\"#888\"/>\
             <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            y0 + 4.0,
            y0 + 17.0
        )?;
    }
    writeln!(
        svg,
        "<line x1=\"{x0}\" y1=\"{y0}\" x2=\"{x1}\" y2=\"{y0}\" stroke=\"#888\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(x0, x1),
        y0 + 34.0,
        escape(label)
    )
}

/// One line with its marks, and with bars from the least to the largest value.
fn draw_line(
    svg: &mut String,
    i: usize,
    line: &[Spot],
    (across, up): (&Ruler, &Ruler),
) -> std::fmt::Result {
    let colour = COLOURS[i % COLOURS.len()];
    let seen = |spot: &&Spot| across.shows(spot.x) && up.shows(spot.y);
    let points: Vec<String> = line
        .iter()
        .filter(seen)
        .map(|spot| format!("{:.1},{:.1}", across.place(spot.x), up.place(spot.y)))
        .collect();
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        points.join(" ")
    )?;
    // Where there are many spots, marks would hide the line.
    let every = line.len().div_ceil(20).max(1);
    for spot in line.iter().filter(seen).step_by(every) {
        let (x, y) = (across.place(spot.x), up.place(spot.y));
        if up.shows(spot.least) && spot.largest > spot.least {
            let (low, high) = (up.place(spot.least), up.place(spot.largest));
            writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" \
                 stroke=\"{colour}\" stroke-opacity=\"0.5\"/>"
            )?;
        }
        writeln!(svg, "{}", mark(i, x, y))?;
    }
    Ok(())
}

/// A distinct mark for every line, so that none is identified by its colour alone.
fn mark(line: usize, x: f64, y: f64) -> String {
    let colour = COLOURS[line % COLOURS.len()];
    match line % 3 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"),
        1 => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6\" height=\"6\" fill=\"{colour}\"/>",
            x - 3.0,
            y - 3.0
        ),
        _ => format!("<path d=\"M{:.1} {:.1}l4 7h-8z\" fill=\"{colour}\"/>", x, y - 4.0),
    }
}

/// Where values lie along an axis.
struct Ruler {
    log: bool,
    /// The ends, as logarithms if `log`.
    from: f64,
    to: f64,
    pixels: (f64, f64),
    step: f64,
}

impl Ruler {
    fn new(values: impl Iterator<Item = f64>, log: bool, pixels: (f64, f64)) -> Self {
        let values = values.filter(|&x| !log || x > 0.0).map(|x| if log { x.log10() } else { x });
        let (least, largest) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (least, largest) = if least <= largest { (least, largest) } else { (0.0, 1.0) };
        let range = (largest - least).max(if log { 0.3 } else { 1e-9 * largest.abs().max(1e-9) });
        // 1, 2 or 5 times a power of ten, so that there are four to eight steps; whole decades.
        let rough = range / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|&s| s >= rough);
        let step = if log { (range / 6.0).ceil() } else { step.unwrap_or(power) };
        // From tick to tick; or no farther than needed, where decades are many and two are within.
        let near = (least - 0.05, largest + 0.05);
        let (from, to) = if log && (near.0 / step).ceil() < (near.1 / step).floor() {
            near
        } else {
            (
                (least / step).floor() * step,
                (largest / step).ceil().max((least / step).floor() + 1.0) * step,
            )
        };
        Self { log, from, to, pixels, step }
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.from) / (self.to - self.from);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Values to write, and where.
    fn ticks(&self) -> Vec<(String, f64)> {
        let first = (self.from / self.step - 1e-9).ceil();
        let count = ((self.to - first * self.step) / self.step + 1e-9).floor();
        #[allow(clippy::cast_possible_truncation, reason = "an axis has few ticks")]
        let count = count.clamp(0.0, 20.0) as i32;
        let tick = |i: i32| {
            let at = (first + f64::from(i)) * self.step;
            let value = if self.log { 10_f64.powf(at) } else { at };
            (number(value, self.step, self.log), self.place(value))
        };
        (0..=count).map(tick).collect()
    }
}

/// The shortest text that distinguishes a value from its neighbours.
fn number(value: f64, step: f64, log: bool) -> String {
    if log {
        return match value {
            v if (0.009..1e4).contains(&v) => format!("{}", (v * 1e3).round() / 1e3),
            v => format!("1e{}", v.log10().round()),
        };
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    // Adding zero turns −0 into 0.
    format!("{:.digits$}", value + 0.0)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], log: bool) -> Vec<String> {
        let ruler = Ruler::new(values.iter().copied(), log, (0.0, 100.0));
        ruler.ticks().into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks(&[50.3, 99.9], false), ["50", "60", "70", "80", "90", "100"]);
        assert_eq!(ticks(&[0.0, 0.013], false), ["0.000", "0.005", "0.010", "0.015"]);
        assert_eq!(ticks(&[9.0, 11_000.0], true), ["10", "100", "1000", "1e4"]);
        assert_eq!(ticks(&[2e-6, 0.5], true), ["1e-5", "1e-4", "1e-3", "0.01", "0.1"]);
        assert_eq!(ticks(&[0.002, 0.03], true), ["1e-3", "0.01", "0.1"]);
        // Nothing, or always the same, can be drawn as well.
        assert!(!ticks(&[], false).is_empty());
        assert!(!ticks(&[7.0, 7.0], false).is_empty());
        assert!(!ticks(&[7.0], true).is_empty());
    }

    #[test]
    fn the_ends_lie_at_the_ends() {
        let ruler = Ruler::new([0.0, 10.0].into_iter(), false, (200.0, 100.0));
        assert!((ruler.place(0.0) - 200.0).abs() < 1e-9);
        assert!((ruler.place(10.0) - 100.0).abs() < 1e-9);
        assert!(!Ruler::new([1.0].into_iter(), true, (0.0, 1.0)).shows(0.0));
    }
}
