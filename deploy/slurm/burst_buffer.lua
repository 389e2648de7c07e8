-- SPDX-License-Identifier: Apache-2.0
--
-- Slurm's burst_buffer/lua for a site without a script of its own; it lies beside slurm.conf. A site with one takes
-- io_autotune_directives.lua alone. A program of the site's does the work on the nodes:
--
--     PROGRAM start JOB_ID UID GID FILE    before the job's prologs; FILE has the completed directives, a line each
--     PROGRAM stop JOB_ID UID GID          after the job, and after a start that failed or was cut off
--
-- as SlurmUser. FILE has what users wrote: it is data, and no shell's. A start that fails leaves the job without a
-- buffer, so let the directory that BURST_BUFFER_DIR names then lead to the storage itself. It may come twice for one
-- job, if slurmctld is restarted meanwhile, and stop without a start.

package.path = "/etc/slurm/?.lua;" .. package.path
local tuner = require("io_autotune_directives")
tuner.directive = "BB" -- Directive= of burst_buffer.conf

local program = "/etc/slurm/burst-buffer"
local directory = "/var/spool/io-autotune-burst-buffers" -- SlurmUser's, 0700: whoever can open a file in it can hold its lock
local mounts = "/burst-buffers" -- a job finds its buffer at MOUNTS/JOB_ID, which BURST_BUFFER_DIR names
local start_seconds = 10 -- with twice the tuner's deadline below half of OtherTimeout
local stop_seconds = 20

local function log(format, ...)
    slurm.log_info("burst buffer: %s", (string.format(format, ...):gsub("%c", "?")))
end

local function place(job_id, name)
    return string.format("%s/%d.%s", directory, job_id, name)
end

local function written(path, text)
    local file, problem = io.open(path, "w")
    if not file then
        return false, problem
    end
    local good = file:write(text)
    return file:close() and good
end

local function owner(job_id)
    local file = io.open(place(job_id, "owner"), "r")
    local text = file and file:read("*l") or ""
    if file then
        file:close()
    end
    return text:match("^(%d+) (%d+)$")
end

-- A job that is cancelled while it starts is torn down beside its pre_run: stop waits for a start that has begun, and
-- one that has not does not begin any more, because the owner's file is gone.
local GUARDED = {
    start = '[ -e "$1" ] || exit 0; shift; exec "$@"',
    stop = 'owner=$1; shift; "$@" && rm -f -- "$owner" "${owner%.owner}.directives" "${owner%.owner}.lock"',
}

-- Whether the program succeeded. Its words are numbers and paths of the admin's.
local function run(seconds, action, job_id, ...)
    local words = {
        "timeout", "--kill-after=1", tostring(seconds), "flock", place(job_id, "lock"), "sh", "-c", GUARDED[action],
        "sh", place(job_id, "owner"), program, action, job_id, ...,
    }
    for index, word in ipairs(words) do
        words[index] = "'" .. tostring(word):gsub("'", "'\\''") .. "'"
    end
    local pipe = io.popen(table.concat(words, " ") .. " 2>&1 </dev/null; echo \"status $?\"", "r")
    local last = ""
    for line in pipe and pipe:lines() or function() end do
        if not line:match("^status ") then
            log("%s", line)
        end
        last = line
    end
    if pipe then
        pipe:close()
    end
    return last == "status 0"
end

-- Whatever goes wrong here, the job goes on: an error would hold it, requeue it for ever, or leave it in STAGE_OUT.
local function harmless(what, action, ...)
    local good, problem = pcall(action, ...)
    if not good then
        log("%s: %s", what, tostring(problem))
    end
    return slurm.SUCCESS
end

function slurm_bb_job_process(job_script)
    return slurm.SUCCESS
end

function slurm_bb_pools()
    return slurm.SUCCESS
end

function slurm_bb_setup(job_id, uid, gid, pool, bb_size, job_script, ...)
    tuner.place_script(job_script, ...)
    return harmless("setup", function()
        assert(written(place(job_id, "owner"), string.format("%d %d\n", uid, gid)))
    end)
end

function slurm_bb_data_in(job_id, job_script)
    return slurm.SUCCESS
end

function slurm_bb_test_data_in(job_id, job_script)
    return slurm.SUCCESS, ""
end

function slurm_bb_real_size(job_id)
    return slurm.SUCCESS
end

function slurm_bb_paths(job_id, job_script, path_file)
    return harmless("paths", function()
        assert(written(path_file, string.format("BURST_BUFFER_DIR=%s/%d\n", mounts, job_id)))
    end)
end

function slurm_bb_pre_run(job_id, job_script, ...)
    return harmless("pre_run", function(...)
        local uid, gid = owner(job_id)
        assert(uid, "the job's owner is not known")
        local completed = tuner.complete(job_id, job_script, ...)
        local file = place(job_id, "directives")
        assert(written(file, table.concat(completed.lines, "\n") .. "\n"))
        if run(start_seconds, "start", job_id, uid, gid, file) then
            tuner.delivered(completed)
        else
            log("job %d goes on without its buffer", job_id)
        end
    end, ...)
end

function slurm_bb_post_run(job_id, job_script)
    return slurm.SUCCESS
end

function slurm_bb_test_data_out(job_id, job_script)
    return slurm.SUCCESS, ""
end

function slurm_bb_data_out(job_id, job_script)
    return slurm.SUCCESS
end

function slurm_bb_job_teardown(job_id, job_script, hurry)
    return harmless("teardown", function()
        local uid, gid = owner(job_id)
        if uid and not run(stop_seconds, "stop", job_id, uid, gid) and not run(stop_seconds, "stop", job_id, uid, gid) then
            log("job %d: its buffer was not stopped; %s says whose it is", job_id, place(job_id, "owner"))
        end
    end)
end

function slurm_bb_get_status(...)
    return slurm.SUCCESS, "io-autotune\n"
end
