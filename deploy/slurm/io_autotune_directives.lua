-- SPDX-License-Identifier: Apache-2.0
--
-- For a site's burst_buffer.lua: completes the directives of a job's burst buffer with the parametrization that
-- io-autotune gives the job. In slurm_bb_pre_run, where the job's nodes are known and its prologs wait:
--
--     package.path = "/etc/slurm/?.lua;" .. package.path
--     local tuner = require("io_autotune_directives")
--     tuner.directive = "SBB"
--     ...
--     local completed = tuner.complete(job_id, job_script)
--     for _, line in ipairs(completed.lines) do ... end    -- "#SBB targets=/fs1 worker-threads=8": set the buffer up
--     tuner.delivered(completed)                           -- only if it was set up with these lines
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
function M.complete(job_id, job_script)
    local good, found = pcall(complete, job_id, job_script)
    if good then
        return found
    end
    log("job %s: %s", tostring(job_id), tostring(found))
    local read, lines = pcall(M.lines, job_script)
    return { lines = read and lines or {}, kept = {}, added = {} }
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
