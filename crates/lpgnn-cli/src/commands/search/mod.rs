mod budget;
mod found;
mod rounds;
pub(crate) mod space;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::data::{Dataset, Split};
use lpgnn::run::{RunConfig, SavedModel, Setup, fingerprint, write_file};

use super::settings::{Chosen, SettingArguments};
use crate::bars::Bars;
use crate::console::{Console, print, print_json};
use crate::interrupt::{self, Stopped};
use crate::parallel;
use crate::result_folder::ResultFolder;
use crate::run_folder::MODEL;
use crate::trial::{self, Place, Trial};
use budget::Budget;
use found::{Found, Ranked, differences};
use rounds::{Round, rounds};
use space::Space;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// What to choose from: a file, paper-nodes or paper-graphs.
    #[arg(long, value_name = "FILE|NAME")]
    space: String,

    /// How much to try: a number of trials, or a time as in 30s, 10m or 2h.
    #[arg(long, value_name = "N|TIME")]
    budget: Option<Budget>,

    /// Of so many trials, one goes on to so many times the epochs; 1 gives all of them all.
    #[arg(long, value_name = "N", default_value_t = 3)]
    halving: usize,

    /// Epochs of the first round, at least.
    #[arg(long, value_name = "N", default_value_t = 20)]
    min_epochs: usize,

    /// The folder of the results; the next free one in runs/ unless told. Trials that are done
    /// there are not done again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// A search, ready to go on.
struct Search<'a> {
    /// What the trials have in common.
    config: RunConfig,
    trials: Vec<RunConfig>,
    dataset: Dataset,
    /// Without a test part.
    split: Split,
    folder: ResultFolder,
    bars: Bars<'a>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let begun = Instant::now();
    let space = Space::find(&arguments.space)?;
    let Chosen { config, dataset } = arguments.settings.choose_with(&space.settings())?;
    let most = match arguments.budget {
        Some(Budget::Trials(trials)) => Some(trials),
        _ => None,
    };
    let trials = space.trials(&config, most, config.training.seed)?;
    let Some(first) = trials.first() else { bail!("{} is empty", arguments.space) };
    let whole = Setup::new(first, &dataset)?.split;
    if whole.val.is_empty() {
        bail!("the split of {} has no validation part to choose by", dataset.name());
    }
    let plan = serde_json::json!({
        "data": fingerprint(&dataset),
        "trials": trials,
        "halving": arguments.halving,
        "min-epochs": arguments.min_epochs,
    });
    let name = format!("{}-search", dataset.name());
    let folder = ResultFolder::open(arguments.out.as_deref(), &name, &plan, &config)?;
    interrupt::listen()?;
    let Arguments { halving, min_epochs, .. } = arguments;
    let rounds = rounds(trials.len(), config.training.epochs, *halving, *min_epochs);
    console.say(format_args!(
        "{}: {} trials, epochs {}",
        dataset.name(),
        trials.len(),
        rounds
            .iter()
            .map(|round| config.training.epochs.div_ceil(round.share).to_string())
            .collect::<Vec<_>>()
            .join(", then ")
    ));
    let split = Split { test: vec![], ..whole.clone() };
    let bars = Bars::new(console);
    let search = Search { config, trials, dataset, split, folder, bars };
    let late = || match arguments.budget {
        Some(Budget::Time(time)) => begun.elapsed() >= time,
        _ => false,
    };
    let (ranked, all) = search.rounds(&rounds, &late)?;
    if !all {
        console.say(format_args!(
            "the time is up; the same command with --out {} goes on",
            search.folder.path().display()
        ));
    }
    let found = search.finish(ranked, whole)?;
    if all {
        (0..search.trials.len()).for_each(|trial| search.forget(trial));
    }
    let file = search.folder.file(BEST);
    console.say(format_args!("the best is {0}: lpgnn train --config {0}", file.display()));
    if arguments.json { print_json(&found) } else { print(&found.text()?) }
}

/// The settings of the winner.
const BEST: &str = "best.toml";

impl Search<'_> {
    /// All trials, the best of the last round first, and whether all rounds were done in time.
    fn rounds(
        &self,
        rounds: &[Round],
        late: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<(Vec<Ranked>, bool)> {
        let mut alive: Vec<usize> = (0..self.trials.len()).collect();
        let mut ranked: Vec<Ranked> = vec![];
        for round in rounds {
            alive.split_off(round.trials.min(alive.len())).into_iter().for_each(|trial| {
                self.forget(trial);
            });
            let all = parallel::each(alive.len(), |place| {
                if late() { Ok(()) } else { self.train(alive[place], round.share, &ranked) }
            })?;
            if !all {
                let again = self.folder.path().display();
                let how = format!("stopped; the same command with --out {again} continues it");
                return Err(Stopped(how).into());
            }
            let done = |&trial: &usize| self.folder.has(&file(trial, round.share));
            let complete = alive.iter().all(done);
            let mut now: Vec<Ranked> = alive
                .iter()
                .filter(|trial| done(trial))
                .map(|&trial| self.folder.read(&file(trial, round.share)))
                .collect::<anyhow::Result<_>>()?;
            // The sort is stable: of equals, the first goes on, whatever the number of threads.
            now.sort_by(|a, b| b.value().total_cmp(&a.value()));
            if !now.is_empty() {
                alive = now.iter().map(|done| done.trial - 1).collect();
                // Behind those that went on come those that did not.
                ranked.retain(|before| !now.iter().any(|now| now.trial == before.trial));
                now.append(&mut ranked);
                ranked = now;
            }
            if !complete {
                return Ok((ranked, false));
            }
        }
        Ok((ranked, true))
    }

    /// A trial, from where the round before has left it.
    fn train(&self, trial: usize, share: usize, before: &[Ranked]) -> anyhow::Result<()> {
        if self.folder.has(&file(trial, share)) {
            return Ok(());
        }
        let config = &self.trials[trial];
        let epochs = config.training.epochs.div_ceil(share);
        let before = before.iter().find(|before| before.trial == trial + 1);
        if let Some(Ranked { result, .. }) = before.filter(|before| before.result.ended) {
            return self.save(trial, share, epochs, result);
        }
        let setup = Setup::with_split(config, &self.dataset, self.split.clone())?;
        let bar = self.bars.add(&format!("trial {}", trial + 1), epochs);
        let place = self.place(trial);
        let done = trial::train(config, &setup, epochs, &place, &bar)?;
        bar.finish_and_clear();
        let Some(done) = done else { return Ok(()) };
        let (epoch, weights) = (done.trial.epoch, done.weights.clone());
        SavedModel::new(&setup, config, self.dataset.name(), epoch, weights)
            .write(&self.model(trial))?;
        self.save(trial, share, epochs, &done.trial)?;
        place.keep(config, &setup, &done)
    }

    fn save(
        &self,
        trial: usize,
        share: usize,
        epochs: usize,
        result: &Trial,
    ) -> anyhow::Result<()> {
        let settings = differences(&self.config, &self.trials[trial])?;
        let done = Ranked { trial: trial + 1, epochs, settings, result: result.clone() };
        self.folder.save(&file(trial, share), &done)?;
        self.bars.say(&done.line());
        Ok(())
    }

    fn place(&self, trial: usize) -> Place {
        Place::new(self.folder.path(), &format!("trial-{:05}", trial + 1))
    }

    fn model(&self, trial: usize) -> PathBuf {
        self.folder.file(&format!("trial-{:05}.model.safetensors", trial + 1))
    }

    /// A trial that is not going on needs no checkpoint and no model.
    fn forget(&self, trial: usize) {
        self.place(trial).remove();
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_file(self.model(trial));
    }

    /// Keeps the winner, and looks at the test part, once.
    fn finish(&self, ranked: Vec<Ranked>, whole: Split) -> anyhow::Result<Found> {
        let best = ranked.first().context("the time was up before a trial was done")?;
        let trial = best.trial - 1;
        let config = &self.trials[trial];
        write_file(&self.folder.file(BEST), config.to_toml().as_bytes())?;
        let path = self.model(trial);
        let kept = self.folder.file(MODEL);
        if path.exists() {
            let copied = std::fs::copy(&path, &kept);
            copied.with_context(|| format!("cannot write {}", kept.display()))?;
        }
        let weights = SavedModel::read(&kept)?.weights;
        let test = if whole.test.is_empty() {
            None
        } else {
            let setup = Setup::with_split(config, &self.dataset, whole)?;
            trial::test(&setup, weights)?
        };
        let found = Found {
            trial: best.trial,
            val: best.result.val_value,
            test_of_the_winner: test,
            ranked,
        };
        self.folder.save("result.json", &found)?;
        Ok(found)
    }
}

fn file(trial: usize, share: usize) -> String {
    format!("trial-{:05}-of-{share}.json", trial + 1)
}
