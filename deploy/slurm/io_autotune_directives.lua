-- SPDX-License-Identifier: Apache-2.0
--
-- For a site's burst_buffer.lua: completes the directives of a job's burst buffer with the parametrization that
-- io-autotune gives the job. In slurm_bb_pre_run, where the job's nodes are known and its prologs wait:
--
--     package.path = "/etc/slurm/?.lua;" .. package.path
--     local tuner = require("io_autotune_directives")
--     tuner.directive = "SBB"
--     ...
--     -- in slurm_bb_pre_run(job_id, job_script, ...), whose further arguments are other ones in each series:
--     local completed = tuner.complete(job_id, job_script, ...)
--     for _, line in ipairs(completed.lines) do ... end    -- "#SBB targets=/fs1 worker-threads=8": set the buffer up
--     tuner.delivered(completed)                           -- only if it was set up with these lines
--
-- From 24.11 on Slurm names a script of an array's task that is not there, and cannot write what slurm_bb_paths is to
-- fill in. `complete` finds the script; a line in slurm_bb_setup puts it where Slurm says that it is:
--
--     tuner.place_script(job_script, ...)
--
-- No function here raises an error, takes longer than twice `deadline_ms`, or asks Slurm while slurmctld waits. If
-- anything fails, the lines are the user's own, and slurmctld's log says why. Do not call it from slurm_bb_job_process
-- or slurm_bb_paths, during which slurmctld does nothing else.

local M = {
    helper = "/usr/libexec/io-autotune/io-autotune-node",
    config = "/etc/io-autotune/client.toml",
    squeue = "squeue",
    -- The word of the directives, as Directive= in burst_buffer.conf.
    directive = "BB_LUA",
    -- Only directives whose first word is this one, such as "jobdw"; nil: all.
    command = nil,
    -- For the service and squeue together: below half of burst_buffer.conf's OtherTimeout.
    deadline_ms = 1500,
}

local MOST_BYTES = 4 * 1024 * 1024
local MOST_LINES = 256

-- A word of a shell's command line. What comes here is the admin's or a number, but for names that the helper checked.
local function quoted(text)
    return "'" .. tostring(text):gsub("'", "'\\''") .. "'"
end

local function log(format, ...)
    local text = "io-autotune: " .. string.format(format, ...)
    if slurm and slurm.log_info then
        slurm.log_info("%s", (text:gsub("%c", "?")))
    end
end

local function is_readable(path)
    local file = io.open(path, "r")
    if file then
        file:close()
    end
    return file ~= nil
end

-- The job that a script's path is of in slurmctld's directory, as the array's own that the job is a task of: this has
-- the script. Slurm hands a table of what it knows of the job as the last argument, from 23.02 on.
local function of_array(job_script, ...)
    local info = select("#", ...) > 0 and select(-1, ...) or nil
    local array = type(info) == "table" and tonumber(info.array_job_id) or 0
    local state = job_script:match("^(.*)/hash%.%d/job%.%d+/script$")
    if array > 0 and state then
        return string.format("%s/hash.%d/job.%d/script", state, array % 10, array)
    end
    return nil
end

-- Where the job's script is: job_script, unless Slurm has told that it is an array's.
local function where(job_script, ...)
    local array = of_array(job_script, ...)
    return array and is_readable(array) and array or job_script
end

-- Runs the helper and returns its lines, with what it says on standard error among them. It ends by itself in
-- deadline_ms; one that does not is killed, so that slurmctld kills nothing.
local function run(arguments)
    local seconds = string.format("%.3f", M.deadline_ms / 1000 + 0.3)
    local words = { "timeout", "--signal=KILL", seconds, M.helper, "directives" }
    for _, argument in ipairs(arguments) do
        words[#words + 1] = argument
    end
    for place, word in ipairs(words) do
        words[place] = quoted(word)
    end
    local pipe = io.popen(table.concat(words, " ") .. " 2>&1 </dev/null; echo \"status $?\"", "r")
    if not pipe then
        return {}
    end
    local lines = {}
    for line in pipe:lines() do
        lines[#lines + 1] = line
    end
    pipe:close()
    return lines
end

-- The directives of a script as its user wrote them: what a job has where the helper cannot be asked.
function M.lines(job_script)
    local lines = {}
    local file = io.open(job_script, "r")
    if not file then
        return lines
    end
    local text = file:read(MOST_BYTES) or ""
    file:close()
    local begin = "#" .. M.directive
    for line in text:gmatch("[^\n]+") do
        line = line:gsub("\r+$", "")
        if line ~= "" and line:sub(1, 1) ~= "#" then
            break
        end
        local rest = line:sub(#begin + 1)
        if line:sub(1, #begin) == begin and (rest == "" or rest:match("^[ \t]")) and #lines < MOST_LINES then
            lines[#lines + 1] = line
        end
    end
    return lines
end

local function complete(job_id, job_script)
    local found = { lines = {}, kept = {}, added = {} }
    local whole, said = false, {}
    local arguments = {
        "complete", "--config", M.config, "--deadline-ms", string.format("%d", M.deadline_ms), "--squeue", M.squeue,
        "--directive", M.directive, "--job-id", string.format("%d", job_id), "--script", job_script,
    }
    if M.command then
        arguments[#arguments + 1] = "--command"
        arguments[#arguments + 1] = M.command
    end
    for _, text in ipairs(run(arguments)) do
        local key, value = text:match("^(%l+) ?(.*)$")
        if text == "end" then
            whole = true
        elseif key == "line" then
            found.lines[#found.lines + 1] = value
        elseif key == "kept" or key == "added" then
            found[key][#found[key] + 1] = value
        elseif key == "run" and not found.run then
            found.run = value
        elseif text ~= "status 0" then
            said[#said + 1] = text
        end
    end
    if #said > 0 then
        log("job %d: %s", job_id, table.concat(said, "; "))
    end
    if not whole then
        return { lines = M.lines(job_script), kept = {}, added = {} }
    end
    if #found.kept > 0 then
        log("job %d: %s is the user's own and left alone", job_id, table.concat(found.kept, ", "))
    end
    return found
end

-- The directives of a job, completed if it is tuned: { lines = {...}, added = {"NAME=VALUE"...}, kept = {"NAME"...} }.
-- All of slurm_bb_pre_run's arguments are taken; with the first two alone, an array's task has its lines only if the
-- helper finds the array.
function M.complete(job_id, job_script, ...)
    local known, script = pcall(where, job_script, ...)
    job_script = known and script or job_script
    local good, found = pcall(complete, job_id, job_script)
    if good then
        return found
    end
    log("job %s: %s", tostring(job_id), tostring(found))
    local read, lines = pcall(M.lines, job_script)
    return { lines = read and lines or {}, kept = {}, added = {} }
end

-- Links the script of an array's task to where Slurm says that it is, as Slurm itself does until 24.05. For
-- slurm_bb_setup; slurmctld removes it with the job.
function M.place_script(job_script, ...)
    local good, problem = pcall(function(...)
        local array = of_array(job_script, ...)
        if not array or is_readable(job_script) or not is_readable(array) then
            return
        end
        local make = "umask 077 && mkdir -p -- " .. quoted((job_script:match("^(.*)/script$")))
        local link = "ln -- " .. quoted(array) .. " " .. quoted(job_script)
        os.execute("{ " .. make .. " && " .. link .. "; } </dev/null >/dev/null 2>&1")
        assert(is_readable(job_script), "it cannot be made a link to " .. array)
    end, ...)
    if not good then
        log("%s: %s", tostring(job_script), tostring(problem))
    end
end

-- Says that the buffer of a job was set up with the lines that M.complete had returned. A run counts only then.
function M.delivered(completed)
    if not (completed and completed.run) then
        return
    end
    local good, problem = pcall(function()
        local arguments = {
            "delivered", "--config", M.config, "--deadline-ms", string.format("%d", M.deadline_ms),
            "--run", completed.run,
        }
        for _, name in ipairs(completed.kept) do
            arguments[#arguments + 1] = "--kept"
            arguments[#arguments + 1] = name
        end
        local said = {}
        for _, text in ipairs(run(arguments)) do
            if text ~= "status 0" then
                said[#said + 1] = text
            end
        end
        if #said > 0 then
            log("run %s: %s", completed.run, table.concat(said, "; "))
        end
    end)
    if not good then
        log("run %s: %s", completed.run, tostring(problem))
    end
end

return M
