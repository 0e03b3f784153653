"""Does the comparison hold on other tasks and other domains?"""
