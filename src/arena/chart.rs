//! Pictures of strength: a ladder, an experiment.

use plotters::prelude::*;

use super::ladder::Ladder;
use crate::util::stats::Estimate;

/// What is drawn.
#[derive(Debug)]
pub struct LadderChart<'a> {
    /// The run's name.
    pub title: &'a str,
    /// The ratings.
    pub ladder: &'a Ladder,
}

const SIZE: (u32, u32) = (900, 540);

/// A line of points with their 95 % intervals.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it; empty where there is one curve only.
    pub name: String,
    /// Places on the horizontal axis, rising, and Elo.
    pub points: Vec<(f64, Estimate)>,
}

/// Elo over something.
#[derive(Clone, Debug)]
pub struct Plot<'a> {
    /// Above the picture.
    pub title: String,
    /// What the horizontal axis counts.
    pub axis: &'a str,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Players that do not change, as horizontal lines.
    pub lines: Vec<(String, Estimate)>,
}

/// An SVG picture of a ladder: Elo over generations with 95 % intervals, and the anchors as horizontal lines.
///
/// # Errors
/// When the drawing library fails.
pub fn chart(what: &LadderChart<'_>) -> Result<String, String> {
    let ladder = what.ladder;
    let points = ladder.rungs.iter().map(|rung| (f64::from(rung.generation), rung.elo));
    plot(&Plot {
        title: format!("{} ({}, {} simulations)", what.title, ladder.game, ladder.simulations),
        axis: "generation",
        curves: vec![Curve { name: String::new(), points: points.collect() }],
        lines: ladder.anchors.iter().cloned().zip(ladder.anchor_elo.iter().copied()).collect(),
    })
}

/// An SVG picture of curves.
///
/// # Errors
/// When the drawing library fails.
pub fn plot(what: &Plot<'_>) -> Result<String, String> {
    let mut svg = String::new();
    draw(what, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

/// Colours that are told apart, also by those who see few.
const COLOURS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(230, 120, 20),
    RGBColor(40, 150, 80),
    RGBColor(200, 50, 50),
    RGBColor(130, 90, 170),
    RGBColor(120, 80, 60),
    RGBColor(220, 110, 180),
    RGBColor(20, 160, 170),
];

fn draw(what: &Plot<'_>, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let points = || what.curves.iter().flat_map(|curve| curve.points.iter().copied());
    let values = || points().map(|(_, elo)| elo.value).chain(what.lines.iter().map(|(_, elo)| elo.value));
    // Intervals may be wider than what is worth showing; the points decide the height.
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let margin = (0.1 * (high - low)).max(50.0);
    let (low, high) = (low - margin, high + margin);
    let first = points().map(|(at, _)| at).reduce(f64::min).unwrap_or(0.0);
    let last = points().map(|(at, _)| at).reduce(f64::max).filter(|&last| last > first).unwrap_or(first + 1.0);
    // On the right there is room for the names of the lines.
    let (left, right) = (first - 0.02 * (last - first), last + 0.14 * (last - first));

    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(&what.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(left..right, low..high)?;
    let digits = usize::from(last < 10.0) + usize::from(last < 1.0);
    chart
        .configure_mesh()
        .x_desc(what.axis)
        .y_desc("Elo")
        .x_label_formatter(&|at| format!("{at:.digits$}"))
        .y_label_formatter(&|elo| format!("{elo:+.0}"))
        .bold_line_style(RGBColor(235, 235, 235))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (name, elo) in &what.lines {
        let ends = [(left, elo.value), (right, elo.value)];
        chart.draw_series(LineSeries::new(ends, RGBColor(150, 150, 150)))?;
        let place = (last + 0.02 * (last - first), elo.value);
        let style = ("sans-serif", 13).into_font().color(&RGBColor(90, 90, 90));
        chart.draw_series(std::iter::once(EmptyElement::at(place) + Text::new(name.clone(), (0, -15), style)))?;
    }
    let inside = |elo: f64| elo.clamp(low, high);
    for (curve, colour) in what.curves.iter().zip(COLOURS.into_iter().cycle()) {
        for &(at, elo) in &curve.points {
            chart.draw_series(LineSeries::new([(at, inside(elo.low)), (at, inside(elo.high))], colour.mix(0.5)))?;
        }
        let points = || curve.points.iter().map(|&(at, elo)| (at, elo.value));
        let line = chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
        if !curve.name.is_empty() {
            line.label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
        chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    if what.curves.iter().any(|curve| !curve.name.is_empty()) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(200, 200, 200))
            .label_font(("sans-serif", 14))
            .draw()?;
    }
    root.present()?;
    Ok(())
}
