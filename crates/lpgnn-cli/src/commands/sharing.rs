//! Work that several processes share: shards that a user starts, or the ranks of a job.

use std::path::Path;

use anyhow::bail;
use clap::Args;
use lpgnn::experiment::{ResultFolder, Shard, Share, TrialName};
use lpgnn::run::RunConfig;
use serde_json::Value;

use crate::ranks;

#[derive(Debug, Args)]
pub(crate) struct ShareArguments {
    /// Run the I-th of N shards, counted from 1; the others may run at the same time, also on other machines, with the
    /// same folder.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Run nothing; merge the results of all shards, or list what is missing.
    #[arg(long, conflicts_with = "shard")]
    pub(super) collect: bool,
}

/// The folder of an experiment.
pub(super) struct Place<'a> {
    /// As the user has it.
    pub(super) out: Option<&'a Path>,
    /// Else it is the next free folder of this name.
    pub(super) name: &'a str,
    pub(super) plan: &'a Value,
    pub(super) config: &'a RunConfig,
}

impl ShareArguments {
    /// What this process does.
    ///
    /// # Errors
    ///
    /// When it is one of several that do not know of each other, or has a shard although it is a rank of a job.
    pub(super) fn share(&self) -> anyhow::Result<Share> {
        ranks::refuse_strangers()?;
        let job = ranks::communicator();
        match (self.shard, &job) {
            (Some(shard), None) => Ok(Share::shard(shard)),
            (Some(shard), Some(_)) => bail!(lpgnn::Error::Option {
                option: "--shard",
                value: shard.to_string(),
                expected: "the processes of a job share all of the work".into(),
            }),
            (None, job) => {
                let rank = job.as_ref().and_then(|job| Share::of_rank(job.rank(), job.ranks()));
                Ok(rank.unwrap_or_else(Share::whole))
            }
        }
    }

    /// Opens the folder: the first process of a job makes it, and the others follow.
    pub(super) fn open(&self, place: &Place<'_>) -> anyhow::Result<ResultFolder> {
        let Place { out, plan, config, .. } = *place;
        if self.collect {
            let Some(path) = out else { bail!(without_folder("--collect", "given".into())) };
            return Ok(ResultFolder::open_existing(path, plan)?);
        }
        let share = ranks::agree(self.share())?;
        let open = |path: &Path| ResultFolder::open_share(path, plan, config, share);
        if ranks::follows() {
            ranks::agree(anyhow::Ok(()))?;
            let path = ranks::text_of_first("");
            return ranks::agree(open(Path::new(&path)));
        }
        let first = match (out, self.shard) {
            (Some(path), _) => open(path).map_err(Into::into),
            (None, Some(shard)) => Err(without_folder("--shard", shard.to_string())),
            (None, None) => next_free(place, share),
        };
        let folder = ranks::agree(first)?;
        ranks::text_of_first(&folder.path().to_string_lossy());
        ranks::agree(anyhow::Ok(folder))
    }

    /// Who has done its part although others have not: as in “shard 1/3 is done; folds 2 and 3 are left to other shards”.
    pub(super) fn part_done(&self, missing: &[TrialName]) -> String {
        let shard = self.shard.map_or_else(String::new, |shard| format!("shard {shard} is done; "));
        let are = if missing.len() == 1 { "is" } else { "are" };
        format!("{shard}{} {are} left to other shards", names(missing))
    }
}

fn without_folder(option: &'static str, value: String) -> anyhow::Error {
    let expected = "--out is required: the folder that all shards share".into();
    lpgnn::Error::Option { option, value, expected }.into()
}

fn next_free(place: &Place<'_>, share: Share) -> anyhow::Result<ResultFolder> {
    let Place { name, plan, config, .. } = *place;
    Ok(ResultFolder::create_in(Path::new("runs"), name, plan, config, share)?)
}

/// As in “folds 2, 3 and 5”.
pub(super) fn names(names: &[TrialName]) -> String {
    let Some((last, others)) = names.split_last() else { return "nothing".into() };
    let kind = last.kind.as_str();
    if others.is_empty() {
        return last.to_string();
    }
    let others: Vec<String> = others.iter().map(|name| name.number.to_string()).collect();
    format!("{kind}s {} and {}", others.join(", "), last.number)
}

#[cfg(test)]
mod tests {
    use lpgnn::experiment::TrialKind;

    use super::*;

    #[test]
    fn what_is_missing_reads_as_a_list() {
        let name = |number| TrialName { kind: TrialKind::Fold, number };
        assert_eq!(names(&[name(3)]), "fold 3");
        assert_eq!(names(&[name(1), name(4)]), "folds 1 and 4");
        assert_eq!(names(&[name(1), name(2), name(9)]), "folds 1, 2 and 9");
    }
}
