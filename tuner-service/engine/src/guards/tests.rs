mod regret_budget;
