-- SPDX-License-Identifier: BSD-2-Clause
-- Lets one of `ratio` samples through; see lua.conf.

passed = 0

function prepare(cfg)
	ratio = cfg.ratio
	info('one of ' .. ratio .. ' samples goes through')
end

function restart()
	passed = 0
end

function process(smp)
	if smp.sequence % ratio ~= 0 then
		return 2 -- drop it
	end
	passed = passed + 1
	return 0
end
