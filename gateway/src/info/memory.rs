//! Sections about memory and persistence.

use proto::counters::WorkerCounter as W;

use super::figures::{ratio, total_system_memory};
use super::{Report, human, line, zeros};

impl Report {
    pub(super) fn memory(&self, out: &mut String) {
        let figures = &self.figures;
        let settings = &self.live.settings;
        let overhead = figures.client_bytes();
        let dataset = figures.used.saturating_sub(overhead);
        let total_system = total_system_memory();
        let with_human = |out: &mut String, name: &str, bytes: u64| {
            line(out, name, bytes);
            line(out, &format!("{name}_human"), human(bytes));
        };
        let percent = |part: u64, whole: u64| format!("{:.2}%", 100.0 * ratio(part, whole));
        with_human(out, "used_memory", figures.used);
        with_human(out, "used_memory_rss", figures.resident);
        with_human(out, "used_memory_peak", figures.used_peak);
        line(
            out,
            "used_memory_peak_perc",
            percent(figures.used, figures.used_peak),
        );
        line(out, "used_memory_overhead", overhead);
        line(out, "used_memory_startup", 0);
        line(out, "used_memory_dataset", dataset);
        line(
            out,
            "used_memory_dataset_perc",
            percent(dataset, figures.used),
        );
        line(out, "allocator_allocated", figures.used);
        line(out, "allocator_active", figures.resident_arenas);
        line(out, "allocator_resident", figures.resident_arenas);
        line(out, "allocator_muzzy", 0);
        with_human(out, "total_system_memory", total_system);
        line(out, "used_memory_lua", 0);
        line(out, "used_memory_vm_eval", 0);
        line(out, "used_memory_lua_human", human(0));
        line(out, "used_memory_scripts_eval", 0);
        let registry = self.shared.registry();
        let functions = registry
            .libraries
            .iter()
            .map(|library| library.functions.len());
        let scripts = self.shared.scripts(|scripts| scripts.len());
        line(out, "number_of_cached_scripts", scripts);
        line(out, "number_of_functions", functions.sum::<usize>());
        line(out, "number_of_libraries", registry.libraries.len());
        line(out, "used_memory_vm_functions", 0);
        with_human(out, "used_memory_vm_total", 0);
        line(out, "used_memory_functions", 0);
        with_human(out, "used_memory_scripts", 0);
        with_human(out, "maxmemory", settings.maxmemory());
        line(out, "maxmemory_policy", settings.maxmemory_policy().word());
        self.allocator(out);
    }

    /// The second half of the memory section.
    pub(super) fn allocator(&self, out: &mut String) {
        let figures = &self.figures;
        let spare = figures.resident_arenas.saturating_sub(figures.used);
        line(
            out,
            "allocator_frag_ratio",
            format_args!("{:.2}", figures.arena_ratio()),
        );
        line(out, "allocator_frag_bytes", spare);
        line(out, "allocator_rss_ratio", format_args!("{:.2}", 1.0));
        line(out, "allocator_rss_bytes", 0);
        let beside = figures.resident.saturating_sub(figures.resident_arenas);
        let rss = ratio(figures.resident, figures.resident_arenas);
        line(out, "rss_overhead_ratio", format_args!("{rss:.2}"));
        line(out, "rss_overhead_bytes", beside);
        line(
            out,
            "mem_fragmentation_ratio",
            format_args!("{:.2}", figures.resident_ratio()),
        );
        line(
            out,
            "mem_fragmentation_bytes",
            figures.resident.saturating_sub(figures.used),
        );
        zeros(
            out,
            &[
                "mem_not_counted_for_evict",
                "mem_replication_backlog",
                "mem_total_replication_buffers",
                "mem_replica_full_sync_buffer",
                "mem_clients_slaves",
            ],
        );
        line(out, "mem_clients_normal", figures.client_bytes());
        zeros(out, &["mem_cluster_links", "mem_aof_buffer"]);
        line(out, "mem_allocator", "sirocco-arena");
        zeros(
            out,
            &[
                "mem_overhead_db_hashtable_rehashing",
                "active_defrag_running",
            ],
        );
        line(
            out,
            "lazyfree_pending_objects",
            self.workers_now(W::LazyFreePending),
        );
        line(out, "lazyfreed_objects", self.workers(W::LazyFreed));
    }

    pub(super) fn persistence(&self, out: &mut String) {
        let started = self.shared.registry().started_unix_ms / 1000;
        zeros(
            out,
            &[
                "loading",
                "async_loading",
                "current_cow_peak",
                "current_cow_size",
            ],
        );
        line(out, "current_cow_size_age", 0);
        line(out, "current_fork_perc", "0.00");
        zeros(
            out,
            &["current_save_keys_processed", "current_save_keys_total"],
        );
        line(
            out,
            "rdb_changes_since_last_save",
            self.workers_now(W::Dirty),
        );
        line(out, "rdb_bgsave_in_progress", 0);
        line(out, "rdb_last_save_time", started);
        line(out, "rdb_last_bgsave_status", "ok");
        line(out, "rdb_last_bgsave_time_sec", -1);
        line(out, "rdb_current_bgsave_time_sec", -1);
        zeros(
            out,
            &[
                "rdb_saves",
                "rdb_last_cow_size",
                "rdb_last_load_keys_expired",
                "rdb_last_load_keys_loaded",
            ],
        );
        line(
            out,
            "aof_enabled",
            u8::from(self.live.settings.appendonly()),
        );
        zeros(out, &["aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
        line(out, "aof_last_rewrite_time_sec", -1);
        line(out, "aof_current_rewrite_time_sec", -1);
        line(out, "aof_last_bgrewrite_status", "ok");
        zeros(out, &["aof_rewrites", "aof_rewrites_consecutive_failures"]);
        line(out, "aof_last_write_status", "ok");
        zeros(
            out,
            &[
                "aof_last_cow_size",
                "module_fork_in_progress",
                "module_fork_last_cow_size",
            ],
        );
    }
}
