//! The picture of a ladder.

use plotters::prelude::*;

use super::ladder::Ladder;

/// What is drawn.
#[derive(Debug)]
pub struct LadderChart<'a> {
    /// The run's name.
    pub title: &'a str,
    /// The ratings.
    pub ladder: &'a Ladder,
}

const SIZE: (u32, u32) = (900, 540);

/// An SVG picture: Elo over generations with 95 % intervals, and the anchors as horizontal lines.
///
/// # Errors
/// When the drawing library fails.
pub fn chart(what: &LadderChart<'_>) -> Result<String, String> {
    let mut svg = String::new();
    draw(what, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(what: &LadderChart<'_>, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let ladder = what.ladder;
    let values = || ladder.rungs.iter().map(|rung| rung.elo).chain(ladder.anchor_elo.iter().copied());
    // Intervals may be wider than what is worth showing; the points decide the height.
    let low = values().map(|elo| elo.value).fold(f64::INFINITY, f64::min);
    let high = values().map(|elo| elo.value).fold(f64::NEG_INFINITY, f64::max);
    let margin = (0.1 * (high - low)).max(50.0);
    let (low, high) = (low - margin, high + margin);
    let first = ladder.rungs.first().map_or(0, |rung| rung.generation);
    let last = ladder.rungs.last().map_or(1, |rung| rung.generation).max(first + 1);
    let (first, last) = (f64::from(first), f64::from(last));
    // On the right there is room for the names of the anchors.
    let (left, right) = (first - 0.02 * (last - first), last + 0.14 * (last - first));

    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("{} ({}, {} simulations)", what.title, ladder.game, ladder.simulations);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(left..right, low..high)?;
    chart
        .configure_mesh()
        .x_desc("generation")
        .y_desc("Elo")
        .x_label_formatter(&|generation| format!("{generation:.0}"))
        .y_label_formatter(&|elo| format!("{elo:+.0}"))
        .bold_line_style(RGBColor(235, 235, 235))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (name, elo) in ladder.anchors.iter().zip(&ladder.anchor_elo) {
        let ends = [(left, elo.value), (right, elo.value)];
        chart.draw_series(LineSeries::new(ends, RGBColor(150, 150, 150)))?;
        let place = (last + 0.02 * (last - first), elo.value);
        let style = ("sans-serif", 13).into_font().color(&RGBColor(90, 90, 90));
        chart.draw_series(std::iter::once(EmptyElement::at(place) + Text::new(name.clone(), (0, -15), style)))?;
    }
    let colour = RGBColor(31, 119, 180);
    let inside = |elo: f64| elo.clamp(low, high);
    for rung in &ladder.rungs {
        let at = f64::from(rung.generation);
        chart
            .draw_series(LineSeries::new([(at, inside(rung.elo.low)), (at, inside(rung.elo.high))], colour.mix(0.5)))?;
    }
    let points = || ladder.rungs.iter().map(|rung| (f64::from(rung.generation), rung.elo.value));
    chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
    chart.draw_series(points().map(|point| Circle::new(point, 3, colour.filled())))?;
    root.present()?;
    Ok(())
}
